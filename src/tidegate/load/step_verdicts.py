"""What the steps of a ramp tell: how much load there is room for, and whether latency jumps between two of them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from tidegate.load.distribution import LEAST_FOR_P99, Distribution
from tidegate.load.figure_text import rate_text, ratio_text, seconds_text
from tidegate.load.phase import Kind
from tidegate.load.phase_figures import PhaseFigures
from tidegate.load.plan import Plan
from tidegate.load.rated_bars import (
    P99_S,
    PEAK_NOTE,
    PLANNED_NOTE,
    BarRule,
    availability_verdict,
    is_above_peak,
    noted,
)
from tidegate.load.verdict import Verdict

HEADROOM = 0.7
"""Planned load against the measured peak (SPEC S1-49)."""
PEAK_FACTOR = 1.5
"""Load that must be carried, against the real peak (SPEC S1-53)."""
P99_JUMP = 10.0
"""SPEC S1-57."""
CROWD = 100
CROWD_JITTER = 2.3
"""P99 / P50 at 100 concurrent requests (SPEC S2-53)."""


def load_of(figures: PhaseFigures) -> float:
    """What steps are ordered by: users of a closed loop, else requests per second."""
    return float(figures.users) if figures.users is not None else figures.due_rate_per_s


def load_text(figures: PhaseFigures) -> str:
    return f"{figures.users} users" if figures.users is not None else rate_text(figures.due_rate_per_s)


def steps_of(figures: Sequence[PhaseFigures]) -> list[PhaseFigures]:
    return sorted((each for each in figures if each.kind == Kind.STEP), key=load_of)


def _jump(figures: Sequence[PhaseFigures], _plan: Plan) -> Verdict:
    name, bar = "P99 from step to step", f"grows to at most {P99_JUMP:g} ×"
    steps = steps_of(figures)
    told = [(each, found) for each in steps if (found := each.all.e2e) is not None and found.count >= LEAST_FOR_P99]
    if len(told) < 2:
        why = f"run a ramp with at least {LEAST_FOR_P99} answers in each step"
        return Verdict(name=name, row="S1-57", bar=bar, measured="–", passed=None, why=why, is_required=bool(steps))
    jumps = [(_ratio(after[1].p99, before[1].p99), before[0], after[0]) for before, after in pairwise(told)]
    worst, before, after = max(jumps, key=lambda each: each[0])
    measured = f"{ratio_text(worst)} from {load_text(before)} to {load_text(after)}"
    if worst > P99_JUMP:
        why = "queueing or contention begins there: serve less than that, or add capacity"
        return Verdict(name=name, row="S1-57", bar=bar, measured=measured, passed=False, why=why)
    left = [each.phase for each in steps if all(each is not known for known, _ in told)]
    why = f"fewer than {LEAST_FOR_P99} answers in {', '.join(left)}: run it longer" if left else ""
    return Verdict(name=name, row="S1-57", bar=bar, measured=measured, passed=None if left else True, why=why)


def _ratio(after: float, before: float) -> float:
    return after / before if before > 0 else 1.0


def _crowd(figures: Sequence[PhaseFigures], _plan: Plan) -> Verdict | None:
    """Only where a phase has 100 users."""
    name, bar = f"P99 / P50 at {CROWD} users", f"<= {CROWD_JITTER:g}"
    found = [each for each in figures if each.users == CROWD]
    if not found:
        return None
    told = [(jitter, each.all.e2e, each) for each in found if (jitter := _jitter(each.all.e2e)) is not None]
    if not told:
        why = f"fewer than {LEAST_FOR_P99} answers: run it longer"
        return Verdict(name=name, row="S2-53", bar=bar, measured="–", passed=None, why=why)
    jitter, e2e, worst = max(told, key=lambda each: each[0])
    spread = f" ({seconds_text(e2e.p99)} / {seconds_text(e2e.p50)})" if e2e is not None else ""
    passed = jitter <= CROWD_JITTER
    why = "" if passed else "the slowest wait behind something: see TTFT, and queue beside model time"
    return Verdict(
        name=name,
        row="S2-53",
        bar=bar,
        measured=f"{ratio_text(jitter)}{spread} in {worst.phase}",
        passed=passed,
        why=why,
    )


def _jitter(found: Distribution | None) -> float | None:
    return None if found is None or found.count < LEAST_FOR_P99 else found.jitter


def _headroom(figures: Sequence[PhaseFigures], plan: Plan) -> Verdict | None:
    """Only where the plan tells what load is planned."""
    planned = noted(plan, PLANNED_NOTE)
    if planned is None:
        return None
    name, bar = "planned load", f"<= {HEADROOM:g} × measured peak"
    steps = steps_of(figures)
    if len(steps) < 2:
        why = "the peak is measured by a ramp: run one beyond the planned load"
        return Verdict(name=name, row="S1-49", bar=bar, measured=f"{planned:g}/s planned", passed=None, why=why)
    peak = max(steps, key=lambda each: each.answered_per_s)
    measured = f"{planned:g}/s planned, peak {rate_text(peak.answered_per_s)} in {peak.phase}"
    if planned <= HEADROOM * peak.answered_per_s:
        return Verdict(name=name, row="S1-49", bar=bar, measured=measured, passed=True)
    if peak is steps[-1]:
        why = "the highest step answered most: the peak was not reached, load higher"
        return Verdict(name=name, row="S1-49", bar=bar, measured=measured, passed=None, why=why)
    why = f"plan at most {rate_text(HEADROOM * peak.answered_per_s)}, or add capacity"
    return Verdict(name=name, row="S1-49", bar=bar, measured=measured, passed=False, why=why)


def _peak(figures: Sequence[PhaseFigures], plan: Plan) -> Verdict | None:
    """Only where the plan tells the real peak. Stable: available, and P99 within its bar."""
    peak = noted(plan, PEAK_NOTE)
    if peak is None:
        return None
    name, bar = "stable at 1.5 × the real peak", f"available, P99 <= {P99_S:g} s at {rate_text(PEAK_FACTOR * peak)}"
    found = [each for each in figures if is_above_peak(each, plan)]
    if not found:
        why = f"no phase had {rate_text(PEAK_FACTOR * peak)}"
        return Verdict(name=name, row="S1-53", bar=bar, measured="–", passed=None, why=why)
    nearest = min(found, key=lambda each: abs(each.due_rate_per_s - PEAK_FACTOR * peak))
    available = availability_verdict([nearest], "")
    e2e = nearest.all.scheduled_e2e
    is_quick = None if e2e is None or e2e.count < LEAST_FOR_P99 else e2e.p99 <= P99_S
    p99 = "–" if e2e is None else seconds_text(e2e.p99)
    measured = f"{available.measured}, P99 {p99} at {rate_text(nearest.due_rate_per_s)}"
    parts = (available.passed, is_quick)
    passed = False if False in parts else None if None in parts else True
    why = "" if passed else available.why or "too few answers, or too slow: see latency over time"
    return Verdict(name=name, row="S1-53", bar=bar, measured=measured, passed=passed, why=why)


STEP_BARS: tuple[BarRule, ...] = (_jump, _crowd, _headroom, _peak)
