"""What all charts of a load report share: sizes, a legend above, phases shaded and named."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tidegate.load.phase_figures import PhaseFigures
from tidegate.simulate.canvas import COLORS, Point
from tidegate.simulate.charts import Axis, Chart, Frame

WIDE, HALF = 1120, 550
CHARACTER = 6.6
"""Width of a character at 12 px, for what is placed beside a text. No font is asked."""
SHADES = ("#8892a0", "#c3cad4")
SHADE_OPACITY = 0.16
GROUND = "#ffffff"
SPIKE = "#d55e00"
ROW = 14
MOST_ROWS = 3


@dataclass(frozen=True, slots=True)
class Legend:
    """One entry: a line, or a dashed one."""

    name: str
    color: str
    is_dashed: bool = False


@dataclass(frozen=True, slots=True)
class Span:
    """A phase on the time axis, against all targets together."""

    name: str
    begin_s: float
    end_s: float
    spikes: tuple[tuple[float, float], ...] = ()


def spans_of(phases: Sequence[PhaseFigures]) -> list[Span]:
    """In their order. Where targets took turns, a phase lasts from the first turn to the last."""
    found: dict[str, Span] = {}
    for each in phases:
        half = each.moment_s / 2
        end_s = max([each.began_s + each.duration_s, *(moment.at_s + half for moment in each.moments)])
        spikes = () if each.spike is None else ((each.began_s + each.spike[0], each.began_s + each.spike[1]),)
        old = found.get(each.phase, Span(each.phase, each.began_s, end_s))
        begin_s, end_s = min(old.begin_s, each.began_s), max(old.end_s, end_s)
        found[each.phase] = Span(each.phase, begin_s, end_s, (*old.spikes, *spikes))
    return sorted(found.values(), key=lambda span: span.begin_s)


def chart(title: str, axes: tuple[Axis, Axis], legend: Sequence[Legend], width: int = HALF, height: int = 330) -> Chart:
    """Two axes and a row of names above them; more rows where they need them."""
    rows = _legend_rows(legend, width)
    made = Chart(title, *axes, Frame(width, height + ROW * (len(rows) - 1), 64, 56 + 18 * len(rows), 22, 50))
    _draw_legend(made, rows)
    return made


def time_chart(
    title: str, spans: Sequence[Span], axes: tuple[Axis, Axis], legend: Sequence[Legend], height: int = 290
) -> Chart:
    """As wide as the page, with the phases shaded behind what comes."""
    rows = _legend_rows(legend, WIDE)
    frame = Frame(WIDE, height, 64, 44 + 18 * len(rows), 22, 50)
    placed = name_rows(spans, axes[0], frame)
    deep = max((row for _, row in placed), default=0)
    frame = Frame(WIDE, height + ROW * deep, 64, 44 + 18 * len(rows) + ROW * (deep + 1), 22, 50)
    made = Chart(title, *axes, frame)
    _draw_legend(made, rows)
    _shade(made, placed, deep)
    return made


def name_rows(spans: Sequence[Span], x: Axis, frame: Frame) -> list[tuple[Span, int]]:
    """Which row each name stands in, so that none lies on another; -1 where there is no room for it."""
    ends = [float("-inf")] * MOST_ROWS
    found = []
    for span in spans:
        begin = frame.left + x.part(span.begin_s) * (frame.width - frame.right - frame.left)
        end = begin + 8 + CHARACTER * len(span.name)
        row = next((row for row, taken in enumerate(ends) if taken <= begin and end <= frame.width), -1)
        if row >= 0:
            ends[row] = end
        found.append((span, row))
    return found


def _shade(made: Chart, placed: Sequence[tuple[Span, int]], deep: int) -> None:
    top, bottom = made.frame.top, made.bottom
    for index, (span, row) in enumerate(placed):
        left, right = (made.place(at, made.y.low)[0] for at in (span.begin_s, span.end_s))
        size = max(0.0, right - left), bottom - top
        made.canvas.band((left, top), size, SHADES[index % 2], SHADE_OPACITY, span.name)
        for spike in span.spikes:
            _shade_spike(made, span, spike)
        if row >= 0:
            made.canvas.line((left, _row_y(made, row, deep)), (left, top), SHADES[0])
    for span, row in placed:
        if row >= 0:
            _name_span(made, span, _row_y(made, row, deep))


def _row_y(made: Chart, row: int, deep: int) -> float:
    """Baseline of the names in a row."""
    return made.frame.top - 8 - ROW * (deep - row)


def _name_span(made: Chart, span: Span, y: float) -> None:
    """On a ground of its own, for lines of other names pass behind it."""
    x = made.place(span.begin_s, made.y.low)[0]
    made.canvas.band((x + 2, y - 10), (CHARACTER * len(span.name), ROW - 1), GROUND, 1.0, span.name)
    made.canvas.text((x + 4, y), span.name, size=11)


def _shade_spike(made: Chart, span: Span, spike: tuple[float, float]) -> None:
    left, right = (made.place(at, made.y.low)[0] for at in spike)
    top = made.frame.top
    made.canvas.band((left, top), (max(2.0, right - left), made.bottom - top), SPIKE, 0.14, f"{span.name}: spike")
    for x in (left, right):
        made.canvas.line((x, top), (x, made.bottom), SPIKE, is_dashed=True)


def _legend_rows(legend: Sequence[Legend], width: int) -> list[list[Legend]]:
    rows: list[list[Legend]] = [[]]
    used = 64.0
    for entry in legend:
        needs = 40 + CHARACTER * len(entry.name)
        if rows[-1] and used + needs > width:
            rows.append([])
            used = 64.0
        rows[-1].append(entry)
        used += needs
    return rows


def _draw_legend(made: Chart, rows: Sequence[Sequence[Legend]]) -> None:
    for index, row in enumerate(rows):
        x, y = float(made.frame.left), 44.0 + 18 * index
        for entry in row:
            made.canvas.line((x, y - 4), (x + 20, y - 4), entry.color, 3.0, is_dashed=entry.is_dashed)
            made.canvas.text((x + 26, y), entry.name)
            x += 40 + CHARACTER * len(entry.name)


def curves(made: Chart, series: Sequence[tuple[Legend, Sequence[Point]]], *, has_dots: bool = False) -> None:
    """Lines in their order; a single point is a dot, for a line of it can't be seen."""
    for entry, points in series:
        placed = [made.place(*point) for point in points]
        if len(placed) > 1:
            made.canvas.path(placed, entry.color, is_dashed=entry.is_dashed)
        for at, point in zip(placed, points, strict=True) if has_dots or len(placed) == 1 else ():
            made.canvas.dot(at, entry.color, f"{entry.name}: {point[0]:g}, {point[1]:.4g}", 3.0)


def empty_note(made: Chart, text: str) -> None:
    """In the middle, where there is nothing to draw."""
    made.canvas.text(((made.frame.left + made.right) / 2, (made.frame.top + made.bottom) / 2), text, anchor="middle")


def color(index: int) -> str:
    return COLORS[index % len(COLORS)]
