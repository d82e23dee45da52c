"""Lines, bars and points on axes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import floor, log10

from tidegate.simulate.canvas import COLORS, INK, Canvas, Point

WIDTH, HEIGHT = 720, 380
LEFT, TOP, RIGHT, BOTTOM = 62, 44, 168, 52
"""Margins; the names of the series stand in the right one."""

Series = Mapping[str, Sequence[Point]]


@dataclass(frozen=True, slots=True)
class Frame:
    """A chart's size and the margins around what is drawn in it."""

    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT
    top: int = TOP
    right: int = RIGHT
    bottom: int = BOTTOM


@dataclass(frozen=True, slots=True)
class Axis:
    """From ``low`` to ``high``, in logarithms or not."""

    label: str
    low: float
    high: float
    is_share: bool = False
    is_log: bool = False
    named: tuple[tuple[float, str], ...] = ()
    """Ticks and their names, in place of round numbers."""

    @classmethod
    def around(cls, label: str, values: Sequence[float]) -> Axis:
        """With a little room on both sides."""
        low, high = min(values, default=0.0), max(values, default=1.0)
        room = (high - low) * 0.05 or 0.5
        return cls(label, low - room, high + room)

    @classmethod
    def seconds(cls, label: str, values: Sequence[float]) -> Axis:
        """Decades, so that 50 ms and a minute are both to be seen."""
        positive = [value for value in values if value > 0]
        low, high = floor(log10(min(positive, default=0.1))), log10(max(positive, default=1.0))
        return cls(label, 10.0**low, 10.0 ** (floor(high) + 1), is_log=True)

    def part(self, value: float) -> float:
        """Where on the axis, from 0 to 1."""
        if not self.is_log:
            return (value - self.low) / (self.high - self.low)
        low, high = log10(self.low), log10(self.high)
        return (log10(max(value, self.low)) - low) / (high - low)

    def ticks(self) -> list[float]:
        if self.named:
            return [value for value, _ in self.named]
        if self.is_log:
            return [10.0**power for power in range(round(log10(self.low)), round(log10(self.high)) + 1)]
        step = _round_step((self.high - self.low) / 6)
        first = -(-self.low // step)
        return [round((first + index) * step, 9) for index in range(8) if (first + index) * step <= self.high + 1e-9]

    def name(self, value: float) -> str:
        for at, text in self.named:
            if at == value:
                return text
        return f"{value:.0%}" if self.is_share else f"{value:g}"


FRAME = Frame()
SHARE = (0.0, 1.0)


def share_axis(label: str) -> Axis:
    return Axis(label, *SHARE, is_share=True)


class Chart:
    """A canvas with two axes."""

    def __init__(self, title: str, x: Axis, y: Axis, frame: Frame = FRAME) -> None:
        self.canvas = Canvas(frame.width, frame.height, title)
        self.frame = frame
        self.x, self.y = x, y
        self.canvas.text((frame.left, 24), title, size=15, is_bold=True)
        self._draw_axes()

    @property
    def right(self) -> int:
        """Where the drawn part ends."""
        return self.frame.width - self.frame.right

    @property
    def bottom(self) -> int:
        return self.frame.height - self.frame.bottom

    def place(self, x: float, y: float) -> Point:
        left, top = self.frame.left, self.frame.top
        return left + self.x.part(x) * (self.right - left), self.bottom - self.y.part(y) * (self.bottom - top)

    def name_series(self, names: Sequence[str]) -> None:
        for index, name in enumerate(names):
            at = self.right + 14, self.frame.top + 8 + 20 * index
            self.canvas.bar((at[0], at[1] - 8), 12, 10, color_of(index), name)
            self.canvas.text((at[0] + 18, at[1] + 1), name)

    def _draw_axes(self) -> None:
        left, top, right, bottom = self.frame.left, self.frame.top, self.right, self.bottom
        for value in self.y.ticks():
            _, y = self.place(self.x.low, value)
            self.canvas.line((left, y), (right, y))
            self.canvas.text((left - 8, y + 4), self.y.name(value), anchor="end")
        for value in self.x.ticks() if self.x.label else ():
            x, _ = self.place(value, self.y.low)
            self.canvas.line((x, bottom), (x, bottom + 5), INK)
            self.canvas.text((x, bottom + 19), self.x.name(value), anchor="middle")
        self.canvas.line((left, bottom), (right, bottom), INK)
        self.canvas.text(((left + right) / 2, self.frame.height - 12), self.x.label, anchor="middle")
        self.canvas.text((left, top - 6), self.y.label, size=11)


def color_of(index: int) -> str:
    return COLORS[index % len(COLORS)]


def lines(title: str, x: Axis, y: Axis, series: Series, *, has_dots: bool = True) -> Canvas:
    """Bounds are dashed."""
    chart = Chart(title, x, y)
    for index, (name, points) in enumerate(series.items()):
        placed = [chart.place(*point) for point in points]
        chart.canvas.path(placed, color_of(index), is_dashed=name.startswith("bound"))
        for at, point in zip(placed, points, strict=True) if has_dots else ():
            chart.canvas.dot(at, color_of(index), f"{name}: {x.name(point[0])}, {y.name(point[1])}")
    chart.name_series([*series])
    return chart.canvas


def points(title: str, x: Axis, y: Axis, series: Series) -> Canvas:
    """Each with its name beside it."""
    chart = Chart(title, x, y)
    for index, (name, found) in enumerate(series.items()):
        for point in found:
            chart.canvas.dot(chart.place(*point), color_of(index), f"{name}: {point[0]:.1%}, {point[1]:.1%}", 6.0)
    chart.name_series([*series])
    return chart.canvas


def bars(title: str, y: Axis, groups: Sequence[str], series: Mapping[str, Sequence[float | None]]) -> Canvas:
    """A group of bars for each of ``groups``, a bar in it for each series."""
    chart = Chart(title, Axis("", 0.0, float(len(groups))), y)
    room = 0.84 / max(1, len(series))
    for index, (name, values) in enumerate(series.items()):
        for group, value in enumerate(values):
            if value is not None:
                left, top = chart.place(group + 0.08 + index * room, value)
                right, bottom = chart.place(group + 0.08 + (index + 0.9) * room, y.low)
                tip = f"{name}, {groups[group]}: {value:.2%}" if y.is_share else f"{name}, {groups[group]}: {value:g}"
                chart.canvas.bar((left, top), right - left, max(0.0, bottom - top), color_of(index), tip)
    for group, text in enumerate(groups):
        chart.canvas.text((chart.place(group + 0.5, y.low)[0], HEIGHT - BOTTOM + 19), text, anchor="middle")
    chart.name_series([*series])
    return chart.canvas


def _round_step(step: float) -> float:
    """1, 2 or 5 times a power of ten, at least ``step``."""
    power = 10.0 ** floor(log10(step))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= step * (1 - 1e-9))
