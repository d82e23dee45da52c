"""Charts over the time of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from tidegate.load.figure_text import digits, seconds_text
from tidegate.load.phase_figures import Moment, PhaseFigures
from tidegate.load.report_axes import clock, duration_axis, number_axis, time_axis
from tidegate.load.report_frame import Legend, Span, color, curves, empty_note, spans_of, time_chart
from tidegate.simulate.canvas import Canvas, Point
from tidegate.simulate.charts import Axis, Chart

OUTCOME_COLORS = {
    "ok": "#3a9d74",
    "degraded": "#e0a82e",
    "shed": "#b86fa8",
    "errors": "#d1442e",
    "expected refusals, unsent": "#9aa4b0",
}
MOMENTS: dict[str, Callable[[Moment], int]] = {
    "ok": lambda moment: moment.answered - moment.degraded,
    "degraded": lambda moment: moment.degraded,
    "shed": lambda moment: moment.shed,
    "errors": lambda moment: moment.errors,
    "expected refusals, unsent": lambda moment: max(0, moment.due - moment.answered - moment.shed - moment.errors),
}
QUANTILES: dict[str, tuple[str, Callable[[Moment], float | None]]] = {
    "P50": ("#0072b2", lambda moment: moment.e2e_p50_s),
    "P95": ("#e69f00", lambda moment: moment.e2e_p95_s),
    "P99": ("#d1442e", lambda moment: moment.e2e_p99_s),
}

MOST_MISSING = 2.5
"""Moments between two that a line still joins."""

Get = Callable[[Moment], float | None]
Line = tuple[Legend, list[list[Point]]]


def run_axis(phases: Sequence[PhaseFigures]) -> tuple[list[Span], Axis]:
    spans = spans_of(phases)
    begin, end = min((span.begin_s for span in spans), default=0.0), max((span.end_s for span in spans), default=1.0)
    return spans, time_axis(begin, end)


def outcomes_over_time(phases: Sequence[PhaseFigures], target: str, everybody: Sequence[PhaseFigures]) -> Canvas:
    """A column per slice of time, outcomes upon each other; requests stand where they were due."""
    spans, x = run_axis(everybody)
    y = number_axis("", (moment.due / width_of(each) for each in everybody for moment in each.moments))
    legend = [Legend(name, shade) for name, shade in OUTCOME_COLORS.items()]
    made = time_chart(f"Outcomes over time: {target} (requests due per second)", spans, (x, y), legend, 260)
    for each in phases:
        for moment in each.moments:
            _column(made, moment, width_of(each))
    return made.canvas


def width_of(phase: PhaseFigures) -> float:
    """Seconds of one moment."""
    if phase.moment_s > 0:
        return phase.moment_s
    return max(phase.duration_s / max(1, len(phase.moments)), 1e-3)


def _column(made: Chart, moment: Moment, width_s: float) -> None:
    counts = {name: get(moment) for name, get in MOMENTS.items()}
    below = 0.0
    tip = f"{clock(moment.at_s)}: " + ", ".join(f"{count} {name}" for name, count in counts.items() if count)
    for name, count in counts.items():
        if count > 0:
            left, top = made.place(moment.at_s - width_s / 2, (below + count) / width_s)
            right, bottom = made.place(moment.at_s + width_s / 2, below / width_s)
            made.canvas.bar((left, top), max(1.0, right - left - 0.6), bottom - top, OUTCOME_COLORS[name], tip)
        below += count


def latency_over_time(phases: Sequence[PhaseFigures], targets: Sequence[str]) -> Canvas:
    """Of one target P50, P95 and P99; of several each one's P50 (dashed) and P99."""
    if len(targets) == 1:
        lines = [(Legend(name, shade), _points(phases, get)) for name, (shade, get) in QUANTILES.items()]
    else:
        lines = _by_target(phases, targets, {"P99": QUANTILES["P99"][1], "P50": QUANTILES["P50"][1]})
    return _duration_lines("Latency over time: from sending to the end (E2E)", phases, lines)


def first_over_time(phases: Sequence[PhaseFigures], targets: Sequence[str]) -> Canvas:
    """Time to the first part of the answer: P95, and P50 dashed."""
    return _duration_lines(
        "Time to first token (TTFT) over time",
        phases,
        _by_target(phases, targets, {"P95": lambda moment: moment.ttft_p95_s, "P50": lambda moment: moment.ttft_p50_s}),
    )


def rates_over_time(phases: Sequence[PhaseFigures], targets: Sequence[str]) -> Canvas:
    """What was due, what was sent, what was answered: where the first two part, the generator did not keep up."""
    spans, x = run_axis(phases)
    gets: dict[str, tuple[str, Callable[[Moment], int]]] = {
        "due": ("#6b7280", lambda moment: moment.due),
        "sent": ("#0072b2", lambda moment: moment.sent),
        "answered": ("#3a9d74", lambda moment: moment.answered),
    }
    lines: list[Line] = []
    for index, target in enumerate(targets):
        for name, (shade, get) in gets.items():
            if index == 0 or name == "answered":
                entry = Legend(
                    name if len(targets) == 1 else f"{name} ({target})", shade if index == 0 else color(index)
                )
                lines.append((Legend(entry.name, entry.color, name == "due"), _rate_points(phases, target, get)))
    y = number_axis("", (value for _, runs in lines for run in runs for _, value in run))
    made = time_chart(
        "Target rate and achieved rate (requests per second)", spans, (x, y), [entry for entry, _ in lines], 250
    )
    _draw(made, lines, digits)
    return made.canvas


def series_over_time(title: str, series: dict[str, list[Point]], phases: Sequence[PhaseFigures]) -> Canvas:
    """Readings of something beside the run."""
    spans, x = run_axis(phases)
    y = number_axis("", (value for points in series.values() for _, value in points))
    lines: list[Line] = [(Legend(name, color(index)), [points]) for index, (name, points) in enumerate(series.items())]
    made = time_chart(title, spans, (x, y), [entry for entry, _ in lines], 230)
    inside = [(entry, [[p for p in run if x.low <= p[0] <= x.high] for run in runs]) for entry, runs in lines]
    _draw(made, inside, digits)
    return made.canvas


def _rate_points(phases: Sequence[PhaseFigures], target: str, get: Callable[[Moment], int]) -> list[list[Point]]:
    return [
        [(moment.at_s, get(moment) / width_of(each)) for moment in run]
        for each in phases
        if each.target == target
        for run in _runs(each)
    ]


def _runs(phase: PhaseFigures) -> list[list[Moment]]:
    """Moments that follow each other: where targets take turns, a phase has holes, and nothing was measured there."""
    runs: list[list[Moment]] = []
    end_s = float("-inf")
    for moment in phase.moments:
        if moment.at_s - end_s > MOST_MISSING * width_of(phase):
            runs.append([])
        runs[-1].append(moment)
        end_s = moment.at_s
    return runs


def _by_target(phases: Sequence[PhaseFigures], targets: Sequence[str], gets: dict[str, Get]) -> list[Line]:
    """Solid the first of ``gets``, dashed the second."""
    lines: list[Line] = []
    for index, target in enumerate(targets):
        own = [each for each in phases if each.target == target]
        for place, (name, get) in enumerate(gets.items()):
            title = name if len(targets) == 1 else f"{name} ({target})"
            lines.append((Legend(title, color(index), place > 0), _points(own, get)))
    return lines


def _points(phases: Iterable[PhaseFigures], get: Get) -> list[list[Point]]:
    """A line for each phase, and for each turn of it: in between nothing was measured."""
    return [
        [(moment.at_s, value) for moment in run if (value := get(moment)) is not None and value > 0]
        for each in phases
        for run in _runs(each)
    ]


def _duration_lines(title: str, phases: Sequence[PhaseFigures], lines: Sequence[Line]) -> Canvas:
    spans, x = run_axis(phases)
    values = [value for _, runs in lines for run in runs for _, value in run]
    made = time_chart(title, spans, (x, duration_axis("", values)), [entry for entry, _ in lines], 300)
    if not values:
        empty_note(made, "no answers")
    _draw(made, lines, seconds_text)
    return made.canvas


def _draw(made: Chart, lines: Sequence[Line], show: Callable[[float], str]) -> None:
    """The last first, so that the first lies above. Each point tells its value."""
    for entry, runs in reversed(lines):
        for run in runs:
            curves(made, [(entry, run)])
            for at_s, value in run:
                made.canvas.spot(made.place(at_s, value), f"{entry.name} at {clock(at_s)}: {show(value)}")
