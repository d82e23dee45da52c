"""Axes of a load report: durations and shares on logarithms, time since the run began."""

from __future__ import annotations

from collections.abc import Iterable
from math import floor, log2, log10

from tidegate.simulate.charts import Axis

FINE_DECADES = 2.5
"""Up to so many decades, 2 and 5 have ticks too."""
STEPS_S = (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 21600, 43200, 86400)
MOST_TICKS = 9
ROUND = ((1, 5), (1.2, 6), (1.5, 5), (2, 4), (2.5, 5), (3, 6), (4, 4), (5, 5), (6, 6), (8, 4), (10, 5))
"""Tops of an axis, and into how many round parts each falls."""
PERCENTILES = ((1.0, "0 %"), (2.0, "50 %"), (10.0, "90 %"), (100.0, "99 %"), (1e3, "99.9 %"), (1e4, "99.99 %"))
"""At 1 / (1 - share): each factor of ten is one more nine."""


def duration_axis(label: str, values: Iterable[float]) -> Axis:
    """Logarithmic, from a round number below the least to one above the most."""
    positive = [value for value in values if value > 0] or [0.1, 1.0]
    low, high = _round_below(min(positive)), _round_above(max(positive))
    if low == high:
        low, high = _round_below(low * 0.9), _round_above(high * 1.1)
    decades = log10(high / low)
    factors = (1, 2, 5) if decades <= FINE_DECADES else (1,)
    powers = range(floor(log10(low)), floor(log10(high)) + 1)
    ticks = [factor * 10.0**power for power in powers for factor in factors]
    inside = [tick for tick in ticks if low * 0.999 <= tick <= high * 1.001]
    return Axis(label, low, high, is_log=True, named=tuple((tick, short_seconds(tick)) for tick in inside))


def short_seconds(value: float) -> str:
    """Of a round number, as short as it can be."""
    if value >= 1:
        return f"{value:g} s"
    return f"{value * 1000:g} ms" if value >= 1e-3 else f"{value * 1e6:.3g} µs"


def time_axis(begin_s: float, end_s: float) -> Axis:
    """Time since the run began, as minutes and seconds."""
    length = max(end_s - begin_s, 1.0)
    step = next((step for step in STEPS_S if length / step <= MOST_TICKS), STEPS_S[-1])
    first = -(-begin_s // step) * step
    ticks = [first + index * step for index in range(MOST_TICKS + 2) if first + index * step <= begin_s + length]
    named = tuple((tick, clock(tick)) for tick in ticks)
    return Axis("time since the run began", begin_s, begin_s + length, named=named)


def clock(seconds: float) -> str:
    """``m:ss``, from an hour on ``h:mm:ss``."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def number_axis(label: str, values: Iterable[float]) -> Axis:
    """From 0 to a round number above the most."""
    most = max(values, default=0.0) or 1.0
    power = 10.0 ** floor(log10(most))
    top, parts = next(each for each in ROUND if each[0] * power >= most * 0.9999)
    ticks = [top * power * part / parts for part in range(parts + 1)]
    return Axis(label, 0.0, ticks[-1], named=tuple((tick, f"{tick:g}") for tick in ticks))


def token_axis(values: Iterable[float]) -> Axis:
    """Logarithmic, in powers of two."""
    found = [value for value in values if value > 0] or [1.0, 1024.0]
    powers = range(floor(log2(min(found))), floor(log2(max(found))) + 2)
    ticks = [2.0**power for power in powers][:: 1 + len(powers) // 10]
    return Axis(
        "prompt tokens",
        2.0 ** powers[0],
        2.0 ** powers[-1],
        is_log=True,
        named=tuple((tick, f"{tick:g}") for tick in ticks),
    )


def percentile_axis(most_values: int) -> Axis:
    """As far as the largest set of values reaches: of a hundred values there is no 99.9 %."""
    high = max(100.0, min(float(most_values), 1e5))
    return Axis("percentile", 1.0, high, is_log=True, named=tuple(each for each in PERCENTILES if each[0] <= high))


def _round_below(value: float) -> float:
    power = 10.0 ** floor(log10(value))
    return max(factor * power for factor in (1, 2, 5) if factor * power <= value * 1.0001)


def _round_above(value: float) -> float:
    power = 10.0 ** floor(log10(value))
    return min(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= value * 0.9999)
