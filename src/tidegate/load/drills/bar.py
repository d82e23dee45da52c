"""A bar that a drill must meet: a figure of its findings and its bound."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tidegate.load.drills.findings import Findings
from tidegate.load.verdict import Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """At least one of ``most`` and ``least`` is set."""

    name: str
    row: str
    """Of the requirements."""
    figure: Callable[[Findings], float | None]
    most: float | None = None
    least: float | None = None
    unit: str = ""
    hint: str = ""
    """What to look at when it is missed."""
    needs_inside: bool = False
    """Its figure comes from behind the gateway. On a deployment that does not show that, it is left open, and blocks
    nothing; on one's own it must be seen."""

    @property
    def text(self) -> str:
        bounds = [f"{sign} {_number(value)}{self._unit}" for sign, value in self._bounds() if value is not None]
        return f"{self.name} {' and '.join(bounds)}"

    def judge(self, findings: Findings) -> Verdict:
        """A figure that is missing is no pass."""
        value = self.figure(findings)
        passed = None if value is None else self._is_met(value)
        measured = "not seen" if value is None else f"{_number(value)}{self._unit}"
        return Verdict(
            name=self.name,
            row=self.row,
            bar=self.text,
            measured=measured,
            passed=passed,
            why="" if passed else self.hint,
            is_required=findings.is_own or not self.needs_inside,
        )

    @property
    def _unit(self) -> str:
        return f" {self.unit}" if self.unit else ""

    def _bounds(self) -> tuple[tuple[str, float | None], ...]:
        return (("<=", self.most), (">=", self.least))

    def _is_met(self, value: float) -> bool:
        return (self.most is None or value <= self.most) and (self.least is None or value >= self.least)


def figure(name: str) -> Callable[[Findings], float | None]:
    """One of the drill's own figures."""
    return lambda findings: findings.figures.get(name)


def detected(most_s: float) -> Bar:
    return Bar(
        name="clients notice nothing more",
        row="S1-65",
        figure=lambda findings: findings.detected_s,
        most=most_s,
        unit="s after the fault",
        hint="look at health.breaker and tail.timeouts: tidegate explain REQUEST of one that failed",
    )


def recovered(most_s: float) -> Bar:
    return Bar(
        name="back at the baseline",
        row="S1-52",
        figure=lambda findings: findings.recovered_s,
        most=most_s,
        unit="s after the healing",
        hint="look at the replica's start time, at health.breaker cooldowns and at the queue after the fault",
    )


def not_duplicated() -> Bar:
    return Bar(
        name="requests computed or charged twice",
        row="S1-67",
        figure=lambda findings: findings.duplicated,
        most=0,
        needs_inside=True,
        hint="look at tail.retries and at clients that retry without an Idempotency-Key",
    )


def _number(value: float) -> str:
    """Three digits: a bar of 0.005 must not read as 0.01."""
    return f"{value:.0f}" if value == int(value) or abs(value) >= 100 else f"{value:.3g}"
