"""Bars of overload: what a burst may cost, and how soon it is over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean, median

from tidegate.load.figure_text import seconds_text, share_text
from tidegate.load.phase import Kind
from tidegate.load.phase_figures import Moment, PhaseFigures
from tidegate.load.plan import Plan
from tidegate.load.rated_bars import BarRule, RateBar
from tidegate.load.verdict import Verdict

ERROR_RATE = 0.005
"""SPEC C9: acceptance 0.1 %, burst and overload 0.5 %."""
RECOVERY_S = 300.0
""" "Within minutes" (SPEC S1-52): five are the most that still are minutes."""
KEPT_SHARE = 0.9
HIGH_LOAD = 1.5
"""A slice of time with so many times the usual number of requests is in the burst."""
KEPT_DOWN = "what kept it down: a queue, retries, or restarts?"
NO_BURST = "run a plan with a burst, such as three-phase"

ERRORS = RateBar(
    "errors in the burst",
    "C9",
    ERROR_RATE,
    lambda part: part.error_rate,
    "an overload must end in early refusals and waits, not in errors: see codes over time",
)


def bursts(figures: Sequence[PhaseFigures]) -> list[PhaseFigures]:
    return [each for each in figures if each.kind == Kind.BURST]


def _errors(figures: Sequence[PhaseFigures], _plan: Plan) -> Verdict:
    found = bursts(figures)
    verdict = ERRORS.verdict(found, NO_BURST)
    if not found:
        return verdict
    shed = max(each.all.shed_rate for each in found)
    degraded = max(each.all.degraded_rate for each in found)
    told = f"{verdict.measured}; shed {share_text(shed)}, degraded {share_text(degraded)}"
    return replace(verdict, measured=told)


def _answers(figures: Sequence[PhaseFigures], _plan: Plan) -> Verdict:
    """A service that refuses everybody makes no errors, and has not survived."""
    name, bar = "goes on answering in the burst", f"at least {KEPT_SHARE * 100:g} % of what it answered before"
    found = [(share, each) for each in bursts(figures) if (share := kept_share(each.moments)) is not None]
    if not found:
        why = "no burst with a load before it: run three-phase"
        return Verdict(name=name, row="S1-59", bar=bar, measured="–", passed=None, why=why)
    share, worst = min(found, key=lambda each: each[0])
    passed = share >= KEPT_SHARE
    why = "" if passed else "the service answers fewer as more come: see answers over time"
    return Verdict(
        name=name, row="S1-59", bar=bar, measured=f"{share * 100:.0f} % in {worst.phase}", passed=passed, why=why
    )


def kept_share(moments: Sequence[Moment]) -> float | None:
    """Of those who came while the load was high, how many were answered per second, against those before."""
    usual = median(moment.due for moment in moments) if moments else 0
    high = [at for at, moment in enumerate(moments) if moment.due >= HIGH_LOAD * usual]
    before = [moment.answered for moment in moments[: high[0]]] if high else []
    if not sum(before):
        return None
    return fmean(moments[at].answered for at in high) / fmean(before)


def recovers(figures: Sequence[PhaseFigures], _plan: Plan) -> Verdict:
    """Back at what it was before a spike within minutes."""
    found = [each for each in figures if each.watched_after_spike_s is not None]
    if not found:
        return _recovery("–", passed=None, why=f"{NO_BURST}; recovery from faults is what drills show")
    lost = [each for each in found if each.recovered_in_s is None]
    if lost:
        watched_s = min(each.watched_after_spike_s or 0.0 for each in lost)
        measured = f"not back in {seconds_text(watched_s)} in {lost[0].phase}"
        if watched_s > RECOVERY_S:
            return _recovery(measured, passed=False, why=KEPT_DOWN)
        return _recovery(measured, passed=None, why="run it longer after the spike, or with more requests before it")
    worst = max(found, key=lambda each: each.recovered_in_s or 0.0)
    took_s = worst.recovered_in_s or 0.0
    passed = took_s <= RECOVERY_S
    return _recovery(f"{seconds_text(took_s)} in {worst.phase}", passed=passed, why="" if passed else KEPT_DOWN)


def _recovery(measured: str, *, passed: bool | None, why: str) -> Verdict:
    return Verdict(
        name="recovery after the spike",
        row="S1-52",
        bar=f"<= {RECOVERY_S / 60:g} min",
        measured=measured,
        passed=passed,
        why=why,
    )


BURST_BARS: tuple[BarRule, ...] = (_errors, _answers)
