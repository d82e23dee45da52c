"""A bar that a user wrote: one figure of some phases, with a bound."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from tidegate.config.problem import suggestion
from tidegate.load.figure_name import RATES, SHARES, value_of_figure, values_behind
from tidegate.load.figure_text import digits, rate_text, ratio_text, seconds_text, share_text
from tidegate.load.phase_figures import PartFigures, PhaseFigures
from tidegate.load.plan import Plan
from tidegate.load.rated_bars import asked
from tidegate.load.verdict import Verdict

LEAST = {"p90": 10, "p95": 20, "p99": 100, "p999": 1000, "jitter": 100}
"""Values, for a percentile to be more than the largest of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureBar:
    figure: str
    """One of ``FIGURE_NAMES``."""
    most: float | None = None
    least: float | None = None
    phase: str = ""
    """Name or kind; empty: all. Of several phases the worst counts."""
    label: str = ""
    tenant: str = ""
    name: str = ""
    row: str = ""
    is_required: bool = True
    place: str = ""
    """Where it is written."""

    @property
    def text(self) -> str:
        shown = [f"<= {figure_text(self.figure, self.most)}" if self.most is not None else ""]
        shown.append(f">= {figure_text(self.figure, self.least)}" if self.least is not None else "")
        return f"{self.figure} {' and '.join(filter(None, shown))}"

    @property
    def title(self) -> str:
        where = ", ".join(each for each in (self.phase, self.label, self.tenant) if each)
        return self.name or (f"{self.figure} ({where})" if where else self.figure)

    def __call__(self, figures: Sequence[PhaseFigures], _plan: Plan) -> Verdict:
        phases = [each for each in figures if self.phase in {"", each.phase, each.kind}]
        if not phases:
            known = [name for each in figures for name in (each.phase, each.kind)]
            return self._verdict(
                "–", passed=None, why=f"no phase {self.phase or 'at all'}{suggestion(self.phase, known)}"
            )
        parts = [(each, part) for each in phases if (part := self._part(each)) is not None]
        if not parts:
            return self._verdict("–", passed=None, why=f"nothing was sent as {self.label or self.tenant}")
        told = [
            (value, each, part)
            for each, part in parts
            if (value := value_of_figure(each, part, self.figure)) is not None
        ]
        if not told:
            return self._verdict("–", passed=None, why="nothing was measured that tells it")
        value, worst, part = max(told, key=lambda each: self._excess(each[0]))
        measured = f"{figure_text(self.figure, value)} in {worst.phase}"
        if not self._is_within(value):
            return self._verdict(measured, passed=False, why=f"see {self.figure} of {worst.phase}")
        short = self._short(part)
        return self._verdict(measured, passed=None if short else True, why=short)

    def _part(self, figures: PhaseFigures) -> PartFigures | None:
        """A tenant and a label together are not measured; the file says so."""
        if self.label:
            return figures.labels.get(self.label)
        return figures.tenants.get(self.tenant) if self.tenant else figures.all

    def _is_within(self, value: float) -> bool:
        return (self.most is None or value <= self.most) and (self.least is None or value >= self.least)

    def _excess(self, value: float) -> float:
        """How far outside the bounds: above 0 it is."""
        over = float("-inf") if self.most is None else value - self.most
        return max(over, float("-inf") if self.least is None else self.least - value)

    def _short(self, part: PartFigures) -> str:
        """Why it is not shown by so few; empty: there are enough."""
        count, tail = values_behind(part, self.figure), self.figure.partition(".")[2]
        if count is not None and count < LEAST.get(tail, 1):
            return f"{count} answers are too few for {tail}: {LEAST[tail]} are needed"
        needed = ceil(1 / self.most - 1e-9) if self.figure in RATES and self.most else 0
        return f"{asked(part)} requests cannot show it: send at least {needed}" if asked(part) < needed else ""

    def _verdict(self, measured: str, *, passed: bool | None, why: str) -> Verdict:
        return Verdict(
            name=self.title,
            row=self.row,
            bar=self.text,
            measured=measured,
            passed=passed,
            why=why,
            is_required=self.is_required,
        )


def figure_text(name: str, value: float) -> str:
    """With the unit that goes with the figure."""
    head, _, tail = name.partition(".")
    if head in SHARES:
        return share_text(value)
    if tail == "jitter":
        return ratio_text(value)
    if tail == "count" or head == "outcomes":
        return digits(value)
    if head.endswith("_per_s"):
        return rate_text(value)
    is_time = bool(tail) or head.endswith("_s")
    return seconds_text(value) if is_time else digits(value)
