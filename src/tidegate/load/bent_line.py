"""A line with one bend, by least squares: flat, then steep."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

GRID = 24
"""Places between two points at which the bend is tried."""
NOISE_SQUARED = 0.05**2
"""In logarithms: what scatters by less than 5 % has no shape to be fitted."""


@dataclass(frozen=True, slots=True)
class BentLine:
    """``y = start + before · x + (after - before) · max(0, x - bend)``."""

    start: float
    before: float
    after: float
    rest: float
    """Sum of squared residuals."""


@dataclass(frozen=True, slots=True)
class Bend:
    at: float
    lines: tuple[BentLine, ...]
    """One for each series."""
    gain: float
    """How much of what straight lines leave unexplained the bend explains: 0 none, 1 all."""


def shared_bend(x: Sequence[float], series: Sequence[Sequence[float]]) -> Bend:
    """The one bend that fits all ``series`` over ascending ``x`` best; each counts by its own scatter.

    Two points at least lie on either side, else there is no slope to speak of: ``x`` has four or more.
    """
    weights = [1 / max(_scatter(y), len(y) * NOISE_SQUARED) for y in series]
    places = [left + (right - left) * place / GRID for left, right in pairwise(x[1:-1]) for place in range(GRID + 1)]
    tried = [(at, tuple(bent_line(x, y, at) for y in series)) for at in places]
    rests = [sum(line.rest * weight for line, weight in zip(lines, weights, strict=True)) for _, lines in tried]
    rest = min(rests)
    at, lines = tried[rests.index(rest)]
    straight = sum(_straight_rest(x, y) * weight for y, weight in zip(series, weights, strict=True))
    noise = len(x) * len(series) * NOISE_SQUARED * 1e-6
    return Bend(at, lines, 1 - rest / straight if straight > noise else 0.0)


def bent_line(x: Sequence[float], y: Sequence[float], bend: float) -> BentLine:
    """Least squares in the three unknowns, for a given ``bend`` inside ``x``."""
    rows = [(1.0, value, max(0.0, value - bend)) for value in x]
    start, before, more = solved(
        [[sum(row[i] * row[j] for row in rows) for j in range(3)] for i in range(3)],
        [sum(row[i] * value for row, value in zip(rows, y, strict=True)) for i in range(3)],
    )
    rest = sum((value - start - before * a - more * b) ** 2 for (_, a, b), value in zip(rows, y, strict=True))
    return BentLine(start, before, before + more, rest)


def solved(matrix: list[list[float]], right: list[float]) -> list[float]:
    """Gauss and Jordan with pivots; a direction without data gets 0."""
    size = len(right)
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    for column in range(size):
        pivot = max(range(column, size), key=lambda row: abs(rows[row][column]))
        rows[column], rows[pivot] = rows[pivot], rows[column]
        head = rows[column][column]
        if abs(head) < 1e-12:
            rows[column] = [0.0] * (size + 1)
            continue
        rows[column] = [value / head for value in rows[column]]
        for other in range(size):
            if other != column:
                factor = rows[other][column]
                rows[other] = [a - factor * b for a, b in zip(rows[other], rows[column], strict=True)]
    return [row[size] for row in rows]


def _scatter(y: Sequence[float]) -> float:
    mean = sum(y) / len(y)
    return sum((value - mean) ** 2 for value in y)


def _straight_rest(x: Sequence[float], y: Sequence[float]) -> float:
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    spread = sum((value - mean_x) ** 2 for value in x)
    slope = sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True)) / spread if spread else 0.0
    return sum((b - mean_y - slope * (a - mean_x)) ** 2 for a, b in zip(x, y, strict=True))
