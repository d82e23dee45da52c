"""Parameters that are not negative, such that the weighted squares of what is left unexplained are least.

``solve`` is for what is linear in them; ``descend`` for what is not: Levenberg-Marquardt with slopes found by trying,
and with large residuals counted by their size in place of their square, for a stall of the machine is no step time.
Deterministic.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from math import inf, sqrt

SWEEPS = 200
ROUNDS = 15
NUDGE = 0.02
"""Relative step of the slopes: small steps meet the grain of a simulation that goes in whole steps."""
ENOUGH = 1e-3
"""A round that gains less than this share of the loss is the last one."""
USUAL = 0.1
"""Residuals beyond it count by their size."""
DAMPING, MOST_DAMPING = 1e-2, 1e3

Point = tuple[float, ...]
Residual = tuple[float, float]
"""What is left unexplained, and its weight."""


def solve(gram: Sequence[Sequence[float]], target: Sequence[float], least: Sequence[float]) -> list[float]:
    """The x with x >= ``least`` that minimises x·gram·x / 2 - target·x, by coordinate descent."""
    size = len(target)
    found = [max(0.0, each) for each in least]
    for _ in range(SWEEPS):
        for i in range(size):
            if gram[i][i] > 0:
                rest = target[i] - sum(gram[i][j] * found[j] for j in range(size) if j != i)
                found[i] = max(least[i], rest / gram[i][i])
    return found


def normal(rows: Sequence[Sequence[float]], values: Sequence[Residual]) -> tuple[list[list[float]], list[float]]:
    """The normal equations of rows · x = value, weighted."""
    size = len(rows[0])
    gram = [[0.0] * size for _ in range(size)]
    target = [0.0] * size
    for row, (value, weight) in zip(rows, values, strict=True):
        for i in range(size):
            part = weight * row[i]
            target[i] += part * value
            for j in range(size):
                gram[i][j] += part * row[j]
    return gram, target


def loss(residuals: Sequence[Residual]) -> float:
    """Weighted; about half the square of small ones, and of large ones the size. Infinite where there are none."""
    if not residuals:
        return inf
    return sum(weight * USUAL * USUAL * (sqrt(1 + (value / USUAL) ** 2) - 1) for value, weight in residuals)


def descend(
    residuals_at: Callable[[Point], list[Residual]],
    start: Point,
    scales: Sequence[float],
    free: Collection[int],
) -> tuple[Point, float]:
    """From ``start`` downhill, moving the ``free`` parameters; ``scales`` are the least steps worth trying of each."""
    point, residuals = start, residuals_at(start)
    value, damping = loss(residuals), DAMPING
    if value == inf:
        return point, value
    for _ in range(ROUNDS):
        slopes = _slopes(residuals_at, point, residuals, {axis: scales[axis] for axis in free})
        before = value
        while damping <= MOST_DAMPING:
            tried = _stepped(point, slopes, residuals, damping)
            left = residuals_at(tried)
            if loss(left) < value:
                point, residuals, value, damping = tried, left, loss(left), damping / 4
                break
            damping *= 4
        if before - value < ENOUGH * before:
            break
    return point, value


def _slopes(
    residuals_at: Callable[[Point], list[Residual]],
    point: Point,
    residuals: list[Residual],
    scales: Mapping[int, float],
) -> list[list[float]]:
    """By residual, then by parameter; 0 for those that are not moved."""
    columns = [[0.0] * len(residuals) for _ in point]
    for axis, scale in scales.items():
        step = NUDGE * max(point[axis], scale)
        moved = residuals_at((*point[:axis], point[axis] + step, *point[axis + 1 :]))
        if len(moved) == len(residuals):
            columns[axis] = [(after - now) / step for (after, _), (now, _) in zip(moved, residuals, strict=True)]
    return [list(row) for row in zip(*columns, strict=True)]


def _stepped(point: Point, slopes: list[list[float]], residuals: list[Residual], damping: float) -> Point:
    weighed = [(-value, weight / sqrt(1 + (value / USUAL) ** 2)) for value, weight in residuals]
    gram, target = normal(slopes, weighed)
    for axis in range(len(point)):
        gram[axis][axis] *= 1 + damping
    return tuple(now + by for now, by in zip(point, solve(gram, target, [-each for each in point]), strict=True))
