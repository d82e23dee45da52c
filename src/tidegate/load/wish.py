"""What somebody wants of a set of parameters: the most or the least of one figure, within bounds on others."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tidegate.config.problem import suggestion
from tidegate.errors import ConfigError
from tidegate.load.figure_bar import figure_text
from tidegate.load.gate_file import number_of
from tidegate.load.map_entry import KEPT, MapEntry

_GOAL = re.compile(r"(most|least)\s+(\S+)")
_BOUND = re.compile(r"(\S+)\s*(<=|>=)\s*(.+)")
EXAMPLE = "most answered_per_s; scheduled_e2e.p99 <= 10 s; error_rate <= 0.1 %"


@dataclass(frozen=True, slots=True)
class Bound:
    figure: str
    is_upper: bool
    value: float

    def is_kept(self, value: float) -> bool:
        return value <= self.value if self.is_upper else value >= self.value

    @property
    def text(self) -> str:
        return f"{self.figure} {'<=' if self.is_upper else '>='} {figure_text(self.figure, self.value)}"


@dataclass(frozen=True, slots=True)
class Wish:
    figure: str
    is_more_better: bool
    bounds: tuple[Bound, ...] = ()

    def missed(self, entry: MapEntry, phase: str = "") -> str:
        """Why ``entry`` does not grant it; empty: it does. What was not measured is not granted."""
        for figure in (self.figure, *(bound.figure for bound in self.bounds)):
            if entry.value(figure, phase) is None:
                return f"{figure} was not measured"
        if not entry.is_valid:
            return "its run was invalid"
        for bound in self.bounds:
            value = entry.value(bound.figure, phase)
            if value is not None and not bound.is_kept(value):
                return f"{figure_text(bound.figure, value)}: not {bound.text}"
        return ""

    def ranked(self, entries: Sequence[MapEntry], phase: str = "") -> list[MapEntry]:
        """Those that grant it, the best first; of equals the latest."""
        granted = [entry for entry in entries if not self.missed(entry, phase)]
        newest_first = sorted(granted, key=lambda entry: entry.date, reverse=True)
        return sorted(
            newest_first, key=lambda entry: entry.value(self.figure, phase) or 0.0, reverse=self.is_more_better
        )


def read_wish(text: str) -> Wish:
    """``most FIGURE; FIGURE <= NUMBER; …``. Raises ConfigError with every mistake."""
    goal, *rest = [part.strip() for part in text.split(";") if part.strip()] or [""]
    problems: list[str] = []
    match = _GOAL.fullmatch(goal)
    if match is None:
        problems.append(f"must begin with most FIGURE or least FIGURE, got {goal!r}; such as {EXAMPLE!r}")
    else:
        problems += _unknown(match[2])
    bounds = []
    for part in rest:
        found = _BOUND.fullmatch(part)
        value = number_of(found[3]) if found else None
        if found is None or value is None:
            problems.append(f"must be FIGURE <= NUMBER or FIGURE >= NUMBER, got {part!r}")
            continue
        problems += _unknown(found[1])
        bounds.append(Bound(found[1], found[2] == "<=", value))
    if problems or match is None:
        raise ConfigError([f"objective: {problem}" for problem in problems])
    return Wish(match[2], match[1] == "most", tuple(bounds))


def _unknown(figure: str) -> list[str]:
    if figure in KEPT:
        return []
    return [f"the map keeps no {figure!r}{suggestion(figure, KEPT)}; it keeps {', '.join(KEPT)}"]
