"""Where latency starts to degrade: the safe limit of a service (SPEC S3-45).

The knee is the bend of a line with one bend through the steps of a ramp, in logarithms: P95 over load, and load over
throughput (which by Little's law is the mean time that a user waits for an answer), both with the same bend. Below it
twice the load brings twice the answers in nearly the same time; above it, hardly more answers and a longer wait.

Why this, and not Kneedle (Satopaa et al. 2011): Kneedle takes the point farthest from the chord between the first and
the last step, so that it moves when somebody loads higher or begins lower, and a single noisy step moves it. A bend
that all steps vote for does neither. Why not the first step with less gain and more latency alone: it can only name a
step, and between steps that lie close together noise decides; it is told beside the knee as a check (``step_rule``).
Why not the Universal Scalability Law: its curve has no corner, and engines with a bound on their batch do.

Nothing is said where the steps do not show it: no bend, or all steps on one side of it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from math import exp, log
from typing import Any

from tidegate.load.bent_line import Bend, shared_bend
from tidegate.load.figure_text import digits, seconds_text
from tidegate.load.phase_figures import PhaseFigures
from tidegate.load.step_verdicts import load_of, steps_of
from tidegate.policy.limits.per_model import KNEE_SHARE

LEAST_STEPS = 5
"""A bend and two slopes are three unknowns beside the level."""
SATURATED = 0.5
"""Slope of load over throughput above the knee: twice the load brings at most 1.41 times the answers."""
LEAST_TURN = 0.3
"""By how much the slope must change to be a bend."""
LEAST_GAIN = 0.3
LEAST_BEYOND = 1.1
"""So far beyond the knee there must be a step."""
THROUGHPUT_GAIN = 0.1
LATENCY_GROWTH = 0.2
"""The step rule: less than 10 % more answers, and more than 20 % more P99, for each half more load."""


@dataclass(frozen=True, slots=True)
class LoadPoint:
    """What one step came to."""

    load: float
    """Users, or requests per second."""
    answered_per_s: float
    p95_s: float
    p99_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Knee:
    unit: str
    """Of loads: ``users`` or ``requests/s``."""
    is_found: bool
    why: str
    """In words: what shows it, or what to run to see it."""
    load: float | None = None
    limit: float | None = None
    """0.8 × the knee: what to let run at once, or come per second."""
    rate_per_s: float | None = None
    """Answers per second there."""
    p95_s: float | None = None
    step_rule: float | None = None
    """Load of the last step before throughput gains little and P99 much; None: no such step."""

    def told(self) -> dict[str, Any]:
        """For ``Result.knee``."""
        return asdict(self)


def knees(figures: Sequence[PhaseFigures]) -> dict[str, Knee]:
    """By target, of the steps among ``figures``; nothing of a target without steps."""
    targets = dict.fromkeys(each.target for each in figures)
    steps = {target: steps_of([each for each in figures if each.target == target]) for target in targets}
    return {target: knee_of(own) for target, own in steps.items() if own}


def knee_of(steps: Sequence[PhaseFigures]) -> Knee:
    """Of one target's steps, all of them by users or all by rate."""
    unit = "users" if all(each.users is not None for each in steps) else "requests/s"
    points = [
        LoadPoint(load_of(each), each.answered_per_s, each.all.scheduled_e2e.p95, each.all.scheduled_e2e.p99)
        for each in steps
        if each.all.scheduled_e2e is not None and each.answered_per_s > 0
    ]
    return find_knee(points, unit)


def find_knee(points: Sequence[LoadPoint], unit: str = "users") -> Knee:
    """``points``: in any order; two of one load count as they are."""
    ordered = sorted((each for each in points if each.load > 0 and each.p95_s > 0), key=lambda each: each.load)
    loads = sorted({each.load for each in ordered})
    rule = step_rule(ordered)
    if len(loads) < LEAST_STEPS:
        why = f"{len(loads)} steps with answers are too few: run at least {LEAST_STEPS}, from light load to overload"
        return Knee(unit=unit, is_found=False, why=why, step_rule=rule)
    x = [log(each.load) for each in ordered]
    waiting = [log(each.load / each.answered_per_s) for each in ordered]
    latency = [log(each.p95_s) for each in ordered]
    bend = shared_bend(x, (waiting, latency))
    missing = _missing(bend, ordered, _slope(x, waiting), unit)
    if missing:
        return Knee(unit=unit, is_found=False, why=missing, step_rule=rule)
    load = exp(bend.at)
    limit = KNEE_SHARE * load
    p95_s = exp(_at(x, latency, bend.at))
    return Knee(
        unit=unit,
        is_found=True,
        why=_words(bend, load, unit),
        load=load,
        limit=float(max(1, int(limit))) if unit == "users" else limit,
        rate_per_s=load / exp(_at(x, waiting, bend.at)),
        p95_s=p95_s,
        step_rule=rule,
    )


def step_rule(points: Sequence[LoadPoint]) -> float | None:
    """The textbook's way, as a check: the last step before one that brings few answers more, and much latency.

    Gains are for half more load, however far apart the steps are.
    """
    for before, after in pairwise(points):
        if after.load <= before.load or before.answered_per_s <= 0:
            continue
        halves = log(after.load / before.load) / log(1.5)
        gain = (after.answered_per_s / before.answered_per_s) ** (1 / halves) - 1
        growth = (after.p99_s / before.p99_s) ** (1 / halves) - 1
        if gain < THROUGHPUT_GAIN and growth > LATENCY_GROWTH:
            return before.load
    return None


def _missing(bend: Bend, points: Sequence[LoadPoint], slope: float, unit: str) -> str:
    """What the steps do not show; empty: there is a knee."""
    least, most = points[0], points[-1]
    told = (
        f"from {digits(least.load)} to {digits(most.load)} {unit}: answers × "
        f"{digits(most.answered_per_s / least.answered_per_s)}, P95 × {digits(most.p95_s / least.p95_s)}"
    )
    waiting = bend.lines[0]
    if waiting.after < SATURATED or exp(bend.at) * LEAST_BEYOND > most.load:
        return f"no knee found, load higher: {told}"
    if waiting.after - waiting.before < LEAST_TURN or bend.gain < LEAST_GAIN or waiting.before >= SATURATED:
        if slope >= SATURATED or waiting.before >= SATURATED:
            return f"every step is beyond the knee, begin lower: {told}"
        return f"no knee found: the steps scatter too much to show one, hold each longer: {told}"
    return ""


def _words(bend: Bend, load: float, unit: str) -> str:
    waiting, latency = bend.lines
    below, above = 2 ** (1 - waiting.before), 2 ** (1 - waiting.after)
    slower = 2**latency.after
    return (
        f"below {digits(load)} {unit} twice the load brings {digits(below)} × the answers, "
        f"above {digits(above)} × with P95 × {digits(slower)}"
    )


def _slope(x: Sequence[float], y: Sequence[float]) -> float:
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    spread = sum((value - mean_x) ** 2 for value in x)
    return sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True)) / spread if spread else 0.0


def _at(x: Sequence[float], y: Sequence[float], at: float) -> float:
    """Between the two steps next to it, in a line."""
    right = max(1, bisect_left(x, at))
    left = max(step for step in range(right) if x[step] < x[right])
    return y[left] + (y[right] - y[left]) * (at - x[left]) / (x[right] - x[left])


def knee_text(knee: Knee) -> str:
    """One line for a terminal."""
    if not knee.is_found or knee.load is None or knee.limit is None or knee.p95_s is None:
        return knee.why
    return (
        f"knee at {digits(knee.load)} {knee.unit} (P95 {seconds_text(knee.p95_s)}): limit "
        f"{digits(knee.limit)} {knee.unit}; {knee.why}"
    )
