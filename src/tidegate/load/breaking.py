"""Load until it breaks (SPEC S2-30): which step comes next, and when a step counts as broken."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import sqrt
from typing import Any

from tidegate.load.distribution import LEAST_FOR_P99
from tidegate.load.figure_text import rate_text, seconds_text, share_text
from tidegate.load.phase_figures import PhaseFigures

GROWTH = 1.5
"""From one step to the next on the way up: a service that was stable at the real peak has to carry as much (S1-53)."""
PRECISION = 1.1
"""The search ends when the first load that broke is within 10 % of the last that held."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakBars:
    """Any of them ends the climb."""

    error_rate: float = 0.005
    """SPEC C9, overload."""
    timeout_rate: float = 0.005
    p99_jump: float = 10.0
    """Against the step before (SPEC S1-57)."""
    kept_throughput: float = 0.9
    """Of the best throughput at a lower load: less is a collapse."""
    p99_s: float | None = 10.0
    """E2E: above it a service "basically fails" (SPEC S1-48). None: only what is said elsewhere here breaks it, and
    one that queues for ever breaks where its clients leave."""
    shed_rate: float = 0.5
    """Who refuses half has not broken, but takes no more: there is nothing to be found above."""


@dataclass(frozen=True, slots=True)
class ClimbStep:
    users: int
    why: str
    """What broke; empty: it held."""
    is_full: bool
    """It held by refusing: no higher load would tell more."""
    figures: PhaseFigures


@dataclass(slots=True, kw_only=True)
class Climb:
    """Ask ``next_users``, play them, ``observe`` what came; until None is next."""

    first_users: int
    most_users: int = 100_000
    bars: BreakBars = field(default_factory=BreakBars)
    steps: list[ClimbStep] = field(default_factory=list)
    ended: str = ""
    """Why it ended before a break was found."""

    def next_users(self) -> int | None:
        """Up by half until something breaks, then between the last that held and the first that broke."""
        if self.ended:
            return None
        if not self.steps:
            return min(self.first_users, self.most_users)
        good, bad = self.last_good, self.first_bad
        if bad is None:
            return self._above(self.steps[-1].users)
        below = good or 1
        if good is None:
            return None if bad <= 1 else max(1, int(bad / GROWTH))
        if bad - below <= 1 or bad / below <= PRECISION:
            return None
        middle = round(sqrt(below * bad))
        return min(max(middle, below + 1), bad - 1)

    def _above(self, users: int) -> int | None:
        if users < self.most_users:
            return min(self.most_users, max(users + 1, round(users * GROWTH)))
        self.ended = f"nothing broke up to {users} users, the most that were allowed"
        return None

    def observe(self, figures: PhaseFigures) -> ClimbStep:
        """``figures``: of the step that ``next_users`` named, with ``users`` set."""
        users = figures.users or 0
        why = self._broken(users, figures)
        is_full = not why and figures.all.shed_rate >= self.bars.shed_rate
        if is_full:
            why = f"shed {share_text(figures.all.shed_rate)}: it holds, and takes no more"
        step = ClimbStep(users, why, is_full, figures)
        self.steps.append(step)
        if figures.invalid:
            self.ended = f"the generator could not send {users} users' load: {figures.invalid[0]}"
        return step

    def _broken(self, users: int, figures: PhaseFigures) -> str:
        bars, part = self.bars, figures.all
        if part.timeout_rate >= bars.timeout_rate:
            return f"timeouts {share_text(part.timeout_rate)}"
        if part.error_rate >= bars.error_rate:
            return f"errors {share_text(part.error_rate)}"
        if part.e2e is None and not part.shed_rate:
            return "nothing was answered"
        if bars.p99_s is not None and part.e2e is not None and part.e2e.p99 > bars.p99_s:
            return f"P99 {seconds_text(part.e2e.p99)}"
        lower = [each for each in self.steps if not each.why and each.users < users]
        return self._jumped(lower, figures) or self._fell(lower, figures)

    def _jumped(self, lower: list[ClimbStep], figures: PhaseFigures) -> str:
        e2e = figures.all.e2e
        before = max(lower, key=lambda each: each.users).figures.all.e2e if lower else None
        if e2e is None or before is None or min(e2e.count, before.count) < LEAST_FOR_P99:
            return ""
        is_jump = e2e.p99 > self.bars.p99_jump * before.p99
        return f"P99 from {seconds_text(before.p99)} to {seconds_text(e2e.p99)}" if is_jump else ""

    def _fell(self, lower: list[ClimbStep], figures: PhaseFigures) -> str:
        best = max((each.figures.answered_per_s for each in lower), default=0.0)
        if figures.answered_per_s >= self.bars.kept_throughput * best:
            return ""
        return f"throughput fell from {rate_text(best)} to {rate_text(figures.answered_per_s)}"

    @property
    def first_bad(self) -> int | None:
        return min((each.users for each in self.steps if each.why), default=None)

    @property
    def last_good(self) -> int | None:
        """Below the first that broke: one that held above it was luck."""
        bad = self.first_bad
        held = [each.users for each in self.steps if not each.why and (bad is None or each.users < bad)]
        return max(held, default=None)

    def told(self) -> dict[str, Any]:
        """For ``Result.break_point``."""
        bad = min((each for each in self.steps if each.why), key=lambda each: each.users, default=None)
        return {
            "broke": bad is not None and not bad.is_full,
            "last_good_users": self.last_good,
            "first_bad_users": self.first_bad,
            "why": bad.why if bad is not None else self.ended or "the climb was not ended",
            "ended": self.ended,
            "steps": [_told(step) for step in self.steps],
        }


def _told(step: ClimbStep) -> dict[str, Any]:
    part = step.figures.all
    return {
        "users": step.users,
        "answered_per_s": step.figures.answered_per_s,
        "p50_s": None if part.e2e is None else part.e2e.p50,
        "p95_s": None if part.e2e is None else part.e2e.p95,
        "p99_s": None if part.e2e is None else part.e2e.p99,
        "error_rate": part.error_rate,
        "shed_rate": part.shed_rate,
        "why": step.why,
    }
