"""Single, ramp, burst, soak: the evaluation that a service has to pass (SPEC S1-55 to S1-60, S2-24)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from tidegate.load.arrival_times import Drawn
from tidegate.load.phase import Kind, Phase
from tidegate.load.plan import Objective, Plan
from tidegate.load.plan_options import PlanOptions
from tidegate.load.plans.mixes import (
    CHAT,
    MIXED,
    STEPS,
    one_question,
    open_phase,
    overlong_note,
    steady_phase,
    user_steps,
    with_overlong,
)
from tidegate.load.rate_curve import constant, spike
from tidegate.load.workloads.blend import Blend
from tidegate.load.workloads.length_draws import LogNormal
from tidegate.load.workloads.recipe import Recipe

SINGLE_MOST_S = 1800.0
BURST_FACTOR = 2.0
"""SPEC S1-59."""
SOAK_SHAPE = 0.5
"""Gaps of a soak are burstier than a Poisson process: their variance is twice its."""
PLANNED_SHARE = 0.7
"""SPEC S1-49."""
RATE_PER_S = 4.0
QUESTION_TOKENS = 56
CHAT_OBJECTIVE = Objective(ttft_s=2.0, tpot_s=0.1, e2e_s=10.0)
"""SPEC S1-46, S1-48: two seconds for a chat to begin, and ten for its whole answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """How much of each phase."""

    single_runs: int
    steps: tuple[int, ...]
    """Users."""
    step_s: float
    burst_s: tuple[float, float]
    """Begin and end of the spike."""
    burst_whole_s: float
    soak_s: float
    """SPEC S1-60: at least 30 min."""


SERVICE = Extent(single_runs=1000, steps=STEPS, step_s=120.0, burst_s=(60.0, 120.0), burst_whole_s=300.0, soak_s=1800.0)
ONE_ENGINE = Extent(
    single_runs=60, steps=(1, 2, 4, 8, 16), step_s=40.0, burst_s=(30.0, 60.0), burst_whole_s=120.0, soak_s=1800.0
)
"""For a small engine, such as the one that comes with Tidegate: all of it in less than forty minutes."""


def single_phase(options: PlanOptions, extent: Extent) -> Phase:
    recipe = options.fitted(one_question(QUESTION_TOKENS))
    return Phase(
        name="single",
        kind=Kind.SINGLE,
        source=Blend(name="single", recipes=(recipe,)),
        duration_s=options.duration(SINGLE_MOST_S),
        users=1,
        count=options.runs(extent.single_runs),
    )


def burst_phase(rate_per_s: float, options: PlanOptions, extent: Extent = SERVICE) -> Phase:
    """``rate_per_s`` is scaled already."""
    begin_s, end_s, whole_s = (options.duration(each) for each in (*extent.burst_s, extent.burst_whole_s))
    curve = spike(rate_per_s, BURST_FACTOR, (begin_s, end_s), whole_s)
    return replace(open_phase("burst", MIXED, Drawn(curve), options, Kind.BURST), spike=(begin_s, end_s))


def soak_phase(rate_per_s: float, options: PlanOptions, extent: Extent = SERVICE) -> Phase:
    """``rate_per_s`` is scaled already."""
    curve = constant(rate_per_s, options.duration(extent.soak_s))
    return open_phase("soak", with_overlong(MIXED, options), Drawn(curve, SOAK_SHAPE), options, Kind.SOAK)


def three_phase(options: PlanOptions) -> Plan:
    return _three_phases("three-phase", options, SERVICE)


def one_engine(options: PlanOptions) -> Plan:
    return _three_phases("one-engine", options, ONE_ENGINE)


def _three_phases(name: str, options: PlanOptions, extent: Extent) -> Plan:
    """Where no rate is given, burst and soak follow the ramp at 70 % of the peak that it found (SPEC S1-49): the ramp's
    users ask for what these two will send."""
    first = (single_phase(options, extent), *user_steps(MIXED, extent.step_s, options, extent.steps))
    notes = {
        "rows": "S1-55 to S1-60, S2-24",
        "over_long": overlong_note(options),
        "soak": f"{options.duration(extent.soak_s):g} s"
        + (" (30 min are asked for)" if options.time_scale < 1 else ""),
    }
    plan = Plan(name=name, seed=options.seed, phases=first, objective=CHAT_OBJECTIVE, notes=notes)
    if options.rate_per_s is None:
        notes["base_rate"] = f"{PLANNED_SHARE:.0%} of the peak that the ramp finds, in soak and burst"
        return replace(plan, after_peak=partial(_after_peak, options=options, extent=extent))
    rate_per_s = options.rate(RATE_PER_S)
    notes["base_rate"] = f"{rate_per_s:g}/s in soak and burst, given"
    return replace(plan, phases=(*first, *_last_phases(rate_per_s, options, extent)))


def _after_peak(peak_per_s: float, *, options: PlanOptions, extent: Extent) -> tuple[Phase, ...]:
    """The peak is of the scaled ramp: it is not scaled again."""
    return _last_phases(PLANNED_SHARE * peak_per_s, options, extent)


def _last_phases(rate_per_s: float, options: PlanOptions, extent: Extent) -> tuple[Phase, ...]:
    return burst_phase(rate_per_s, options, extent), soak_phase(rate_per_s, options, extent)


def acceptance(options: PlanOptions) -> Plan:
    """At the planned peak, at 1.5 times it (SPEC S1-53), a burst on it and a soak below it."""
    rate_per_s = options.rate(RATE_PER_S)
    ten_minutes_s = options.duration(600.0)
    return Plan(
        name="acceptance",
        seed=options.seed,
        phases=(
            steady_phase("peak", MIXED, constant(rate_per_s, ten_minutes_s), options),
            steady_phase("peak-x1.5", MIXED, constant(rate_per_s * 1.5, ten_minutes_s), options),
            burst_phase(rate_per_s, options),
            soak_phase(rate_per_s, options),
        ),
        objective=CHAT_OBJECTIVE,
        notes={
            "rows": "S1-46 to S1-54",
            "peak": f"{rate_per_s:g}/s" + ("" if options.rate_per_s else ", not from a measured peak"),
            "over_long": overlong_note(options),
        }
        | ({"real_peak_per_s": f"{rate_per_s:g}"} if options.rate_per_s else {}),
    )


def steady_load(options: PlanOptions) -> Plan:
    rate_per_s = options.rate(RATE_PER_S)
    curve = constant(rate_per_s, options.duration(600.0))
    phase = steady_phase("steady", MIXED, curve, options)
    return Plan(name="steady-load", seed=options.seed, phases=(phase,), objective=CHAT_OBJECTIVE)


def quick(options: PlanOptions) -> Plan:
    """Is everything in place? Two users for 20 s, then 40 s at 70 % of what they got, or at the rate that is given.

    So short that the small engine on one core, which reads a hundred tokens a second, answers some dozens.
    """
    short = (replace(CHAT, prompt=LogNormal(24, 0.6, 8, 96), output=LogNormal(16, 0.5, 8, 32)),)
    plan = Plan(name="quick", seed=options.seed, phases=(), objective=CHAT_OBJECTIVE)
    if options.rate_per_s is not None:
        return replace(plan, phases=_quick_phases(options.rate(RATE_PER_S), short=short, options=options))
    step = user_steps(short, 20.0, replace(options, scale=1.0), (2,))
    return replace(plan, phases=step, after_peak=partial(_after_step, short=short, options=options))


def _after_step(peak_per_s: float, *, short: tuple[Recipe, ...], options: PlanOptions) -> tuple[Phase, ...]:
    return _quick_phases(PLANNED_SHARE * peak_per_s, short=short, options=options)


def _quick_phases(rate_per_s: float, *, short: tuple[Recipe, ...], options: PlanOptions) -> tuple[Phase, ...]:
    return (steady_phase("quick", short, constant(rate_per_s, options.duration(40.0)), options),)
