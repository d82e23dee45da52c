"""Charts whose horizontal axis is not time: percentiles, throughput, gaps, and where the time went."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log

from tidegate.load.distribution import Distribution
from tidegate.load.figure_text import digits, seconds_text
from tidegate.load.phase_figures import PhaseFigures
from tidegate.load.played import Played
from tidegate.load.report_axes import duration_axis, number_axis, percentile_axis, token_axis
from tidegate.load.report_frame import CHARACTER, Legend, chart, color, curves, empty_note
from tidegate.load.sample import Sample
from tidegate.simulate.canvas import INK, Canvas, Point
from tidegate.simulate.charts import Chart
from tidegate.simulate.quantile import quantile

STEPS_PER_NINE = 24
"""Points of a percentile curve for each factor of ten on its axis."""
KNOWN = ((2.0, "p50"), (10.0, "p90"), (20.0, "p95"), (100.0, "p99"), (1000.0, "p999"))
"""Where a distribution's own figures stand on that axis."""
QUANTILE_COLORS = {"p50": "#0072b2", "p95": "#e69f00", "p99": "#d1442e"}
NAME_HEIGHT = 13
GAP_STEP = 1.22
"""Ratio of two neighbouring bars, about eleven for a factor of ten."""


@dataclass(frozen=True, slots=True)
class Curve:
    """One set of values on the percentile axis."""

    name: str
    points: Sequence[Point]
    count: int
    is_dashed: bool = False


def curve_of(name: str, values: Sequence[float], *, is_dashed: bool = False) -> Curve:
    """Every percentile, exact; the last point is the largest value."""
    ordered = sorted(values)
    count = len(ordered)
    places = [10 ** (step / STEPS_PER_NINE) for step in range(6 * STEPS_PER_NINE)]
    points = [(at, quantile(ordered, 1 - 1 / at)) for at in places if at < count]
    return Curve(name, [*points, (float(max(count, 1)), ordered[-1])] if ordered else [], count, is_dashed)


def curve_of_figures(name: str, found: Distribution | None, *, is_dashed: bool = False) -> Curve:
    """The same where only the figures are at hand: a few points, joined by lines."""
    if found is None:
        return Curve(name, [], 0, is_dashed)
    inside = [(at, float(getattr(found, key))) for at, key in KNOWN if at < found.count]
    return Curve(name, [(1.0, found.least), *inside, (float(found.count), found.most)], found.count, is_dashed)


def percentile_curves(title: str, curves_of_it: Sequence[Curve]) -> Canvas:
    """HDR-style: each factor of ten to the right is one more nine. Dashed ones keep the colour of the one before."""
    drawn = [each for each in curves_of_it if each.points]
    shades, index = [], -1
    for each in drawn:
        index += not each.is_dashed or index < 0
        shades.append(color(index))
    legend = [Legend(each.name, shade, each.is_dashed) for each, shade in zip(drawn, shades, strict=True)]
    y = duration_axis("", [value for each in drawn for _, value in each.points])
    made = chart(title, (percentile_axis(max((each.count for each in drawn), default=0)), y), legend)
    if not drawn:
        empty_note(made, "no answers")
    for entry, each in zip(legend, drawn, strict=True):
        curves(made, [(entry, [(min(at, made.x.high), value) for at, value in each.points])])
        for at, value in each.points[:: STEPS_PER_NINE // 6]:
            if at <= made.x.high:
                tip = f"{entry.name}: {100 - 100 / at:.5g} % within {seconds_text(value)}"
                made.canvas.spot(made.place(at, value), tip)
    return made.canvas


def samples_of(played: Sequence[Played], target: str, phase: str) -> list[Sample]:
    """Those that were answered."""
    return [
        sample
        for each in played
        if each.target == target and each.phase == phase
        for sample in each.samples
        if sample.is_answered
    ]


@dataclass(frozen=True, slots=True)
class KneeMark:
    """Where latency starts to degrade."""

    target: str
    rate_per_s: float
    words: str


Drawn = tuple[Legend, list[tuple[PhaseFigures, Point]]]


def throughput_latency(steps: Sequence[PhaseFigures], knees: Sequence[KneeMark]) -> Canvas:
    """Each step of a ramp as a point: P99, P95 and P50; of several targets P99, and P50 dashed."""
    targets = [*dict.fromkeys(each.target for each in steps)]
    series = [line for index, target in enumerate(targets) for line in _step_lines(steps, target, index, len(targets))]
    placed = [point for _, points in series for _, point in points]
    rates = [*(rate for rate, _ in placed), *(knee.rate_per_s for knee in knees)]
    axes = number_axis("answers per second", rates), duration_axis("", [value for _, value in placed])
    made = chart("Throughput and latency (E2E)", axes, [entry for entry, _ in series])
    for knee in knees:
        _mark_knee(made, knee, is_named=len(targets) > 1)
    for entry, points in series:
        curves(made, [(entry, [point for _, point in points])])
        for each, point in points:
            tip = f"{entry.name}, {each.phase}: {seconds_text(point[1])} at {digits(point[0])} answers/s"
            made.canvas.dot(made.place(*point), entry.color, tip)
    _name_steps(made, [pair for _, points in series for pair in points])
    return made.canvas


def _step_lines(steps: Sequence[PhaseFigures], target: str, index: int, targets: int) -> list[Drawn]:
    own = sorted((each for each in steps if each.target == target and each.all.e2e is not None), key=_load_of)
    found = []
    for place, name in enumerate(("p99", "p95", "p50") if targets == 1 else ("p99", "p50")):
        points = [(each, (each.answered_per_s, float(getattr(each.all.e2e, name)))) for each in own]
        title = name.upper() if targets == 1 else f"{name.upper()} ({target})"
        shade = QUANTILE_COLORS[name] if targets == 1 else color(index)
        found.append((Legend(title, shade, targets > 1 and place > 0), points))
    return found


def _mark_knee(made: Chart, knee: KneeMark, *, is_named: bool) -> None:
    """Its name stands above the chart, where no step's name is."""
    x, top = made.place(knee.rate_per_s, made.y.low)[0], made.frame.top
    made.canvas.line((x, top), (x, made.bottom), INK, 1.5, is_dashed=True)
    text = f"knee ({knee.target})" if is_named else "knee"
    half = CHARACTER * len(text) / 2
    at = min(max(x, made.frame.left + half), made.right - half), top - 5
    made.canvas.text(at, text, anchor="middle", size=11)
    made.canvas.spot(at, knee.words)


def _name_steps(made: Chart, points: Sequence[tuple[PhaseFigures, Point]]) -> None:
    """Above the highest point of each; a name that would lie on another one is left out (its points still tell it)."""
    taken: list[Point] = []
    highest = {each.phase: (each, point) for each, point in sorted(points, key=lambda pair: pair[1][1])}
    for each, point in highest.values():
        name = f"{each.users} users" if each.users else each.phase
        half = CHARACTER * len(name) / 2
        x, y = made.place(*point)
        x = min(max(x, made.frame.left + half), made.right - half)
        if all(abs(x - other[0]) > 2 * half or abs(y - other[1]) > NAME_HEIGHT for other in taken):
            made.canvas.text((x, y - 9), name, anchor="middle", size=11)
            taken.append((x, y))


def _load_of(phase: PhaseFigures) -> float:
    return float(phase.users or phase.due_rate_per_s)


def gap_histogram(phases: Sequence[PhaseFigures], targets: Sequence[str]) -> Canvas:
    """Times between the reads of all streams: bars for one target, an outline for each of several."""
    by_target = {target: _gap_shares(phases, target) for target in targets}
    values = [value for shares in by_target.values() for value in shares]
    highs = [share for shares in by_target.values() for share in shares.values()]
    axes = duration_axis("time between two reads of a stream", values), number_axis("% of gaps", highs)
    legend = [Legend(target, color(index)) for index, target in enumerate(targets)] if len(targets) > 1 else []
    made = chart("Gaps inside streams", axes, legend)
    if not values:
        empty_note(made, "no streams")
    for index, shares in enumerate(by_target.values()):
        if len(targets) > 1:
            curves(made, [(legend[index], [*shares.items()])])
        else:
            _gap_bars(made, shares)
    return made.canvas


def _gap_bars(made: Chart, shares: dict[float, float]) -> None:
    half = GAP_STEP**0.5
    for value, share in shares.items():
        left, top = made.place(value / half, share)
        right, bottom = made.place(value * half, 0.0)
        tip = f"about {seconds_text(value)}: {digits(share)} % of gaps"
        right = min(right, made.right)
        made.canvas.bar((left, top), max(1.0, right - left - 1), bottom - top, color(0), tip)


def _gap_shares(phases: Sequence[PhaseFigures], target: str) -> dict[float, float]:
    """Percent of all gaps against ``target``, by the middle of a bar."""
    found: dict[float, float] = {}
    for each in phases:
        for value, count in each.gap_buckets if each.target == target else ():
            middle = GAP_STEP ** round(log(max(value, 1e-6)) / log(GAP_STEP))
            found[middle] = found.get(middle, 0.0) + count
    total = sum(found.values())
    return {middle: 100 * count / total for middle, count in sorted(found.items())}


def latency_by_length(phase: PhaseFigures) -> Canvas | None:
    """P95 and P50 over the tokens of the prompt (SPEC S2-27): a line is right, a jump is not."""
    if len(phase.lengths) < 2:
        return None
    lines = {
        "E2E P95": (QUANTILE_COLORS["p95"], [(each.tokens, each.e2e_p95_s) for each in phase.lengths]),
        "E2E P50": (QUANTILE_COLORS["p50"], [(each.tokens, each.e2e_p50_s) for each in phase.lengths]),
    }
    tokens = [each.tokens for each in phase.lengths]
    axes = token_axis(tokens), duration_axis("", [value for _, points in lines.values() for _, value in points])
    legend = [Legend(name, shade) for name, (shade, _) in lines.items()]
    made = chart(f"Latency by length of the prompt: {phase.phase}", axes, legend)
    for entry, (_, points) in zip(legend, lines.values(), strict=True):
        curves(made, [(entry, points)])
        for at, value in points:
            made.canvas.dot(made.place(at, value), entry.color, f"{at:.0f} tokens: {seconds_text(value)}", 3.0)
    return made.canvas
