"""Which charts a load report has, given what was played."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tidegate.load.phase import Kind
from tidegate.load.phase_figures import PhaseFigures
from tidegate.load.played import Played
from tidegate.load.report_cards import main_phase
from tidegate.load.report_curves import (
    Curve,
    KneeMark,
    curve_of,
    curve_of_figures,
    gap_histogram,
    latency_by_length,
    percentile_curves,
    samples_of,
    throughput_latency,
)
from tidegate.load.report_times import (
    first_over_time,
    latency_over_time,
    outcomes_over_time,
    rates_over_time,
    series_over_time,
)
from tidegate.load.result import Result
from tidegate.simulate.canvas import Canvas

MOST_CURVES = 8
"""As many as have a colour of their own that can be told apart."""
FEWEST_STEPS = 2


def wide_charts(phases: Sequence[PhaseFigures], targets: Sequence[str]) -> list[Canvas]:
    """Over the time of the run."""
    outcomes = [
        outcomes_over_time([each for each in phases if each.target == target], target, phases) for target in targets
    ]
    return [
        latency_over_time(phases, targets),
        first_over_time(phases, targets),
        *outcomes,
        rates_over_time(phases, targets),
    ]


def earlier_phases(against: Result | None) -> list[PhaseFigures]:
    """Of another run, under names that tell them from this one's."""
    return [] if against is None else [replace(each, target=f"earlier: {each.target}") for each in against.phases]


def beside_charts(result: Result, played: Sequence[Played], earlier: Sequence[PhaseFigures] = ()) -> list[Canvas]:
    """The others, two in a row. ``earlier``: of a run that this one is compared with."""
    phases = result.phases
    main = main_phase(phases).phase
    firsts = [*_first_curves(result, played), *_earlier_curves(earlier, main, "ttft")]
    ends = [*_end_curves(result, played), *_earlier_curves(earlier, main, "e2e")]
    charts = [
        percentile_curves("Percentiles of TTFT", firsts),
        percentile_curves("Percentiles of E2E, from sending", ends),
        percentile_curves(f"E2E from sending and from schedule: {main}", _two_views(result, played)),
    ]
    steps = [each for each in (*phases, *earlier) if each.kind == Kind.STEP]
    if len({each.phase for each in steps}) >= FEWEST_STEPS:
        charts.append(throughput_latency(steps, knees_of(result)))
    charts.append(gap_histogram(phases, result.targets))
    by_length = latency_by_length(max(phases, key=lambda each: (each.phase == main, len(each.lengths))))
    return charts if by_length is None else [*charts, by_length]


def _curve_phases(result: Result) -> list[PhaseFigures]:
    """Of one target all phases; of several the main phase of each, so that like stands beside like."""
    main = main_phase(result.phases)
    if len(result.targets) == 1:
        others = [each for each in result.phases if each is not main][: MOST_CURVES - 1]
        return [each for each in result.phases if each is main or each in others]
    return [each for each in result.phases if each.phase == main.phase]


def _earlier_curves(earlier: Sequence[PhaseFigures], phase: str, figure: str) -> list[Curve]:
    """Through the figures that a result has, for its records are not at hand."""
    return [
        curve_of_figures(f"{each.phase} · {each.target}", getattr(each.all, figure))
        for each in earlier
        if each.phase == phase
    ]


def _name(each: PhaseFigures, result: Result) -> str:
    return each.phase if len(result.targets) == 1 else f"{each.phase} · {each.target}"


def _first_curves(result: Result, played: Sequence[Played]) -> list[Curve]:
    if not played:
        return [curve_of_figures(_name(each, result), each.all.ttft) for each in _curve_phases(result)]
    found = []
    for each in _curve_phases(result):
        streams = (sample for sample in samples_of(played, each.target, each.phase) if sample.is_stream)
        found.append(curve_of(_name(each, result), [sample.ttft_s for sample in streams if sample.first_at > 0]))
    return found


def _end_curves(result: Result, played: Sequence[Played]) -> list[Curve]:
    if not played:
        return [curve_of_figures(_name(each, result), each.all.e2e) for each in _curve_phases(result)]
    return [
        curve_of(_name(each, result), [sample.e2e_s for sample in samples_of(played, each.target, each.phase)])
        for each in _curve_phases(result)
    ]


def _two_views(result: Result, played: Sequence[Played]) -> list[Curve]:
    main = main_phase(result.phases).phase
    found = []
    for each in result.phases:
        if each.phase != main:
            continue
        name = f" · {each.target}" if len(result.targets) > 1 else ""
        samples = samples_of(played, each.target, each.phase)
        if played:
            found.append(curve_of(f"from sending{name}", [sample.e2e_s for sample in samples]))
            found.append(
                curve_of(f"from schedule{name}", [sample.scheduled_e2e_s for sample in samples], is_dashed=True)
            )
        else:
            found.append(curve_of_figures(f"from sending{name}", each.all.e2e))
            found.append(curve_of_figures(f"from schedule{name}", each.all.scheduled_e2e, is_dashed=True))
    return found


def knees_of(result: Result) -> list[KneeMark]:
    """Those that were found, by target."""
    return [
        KneeMark(target, float(found["rate_per_s"]), str(found.get("why", "")))
        for target, found in result.knee.items()
        if isinstance(found, Mapping) and isinstance(found.get("rate_per_s"), int | float)
    ]


def engine_charts(result: Result) -> list[Canvas]:
    """What ``EngineWatch`` read (its ``readings``)."""
    found = []
    for reading in result.engine.get("readings", ()) if result.phases else ():
        lines = {
            str(name): [(float(at_s), float(value)) for at_s, value in points]
            for name, points in reading["lines"].items()
            if points
        }
        if lines:
            found.append(series_over_time(f"{reading['title']} ({reading['unit']})", lines, result.phases))
    return found
