"""The longest step since a given one, for every sequence at once."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from math import exp, log

PER_FACTOR_E = 100
"""Buckets are 1 % wide."""


def bucket(duration_ps: int) -> int:
    return round(log(duration_ps) * PER_FACTOR_E)


def middle_ps(index: int) -> float:
    """The middle of a bucket."""
    return exp(index / PER_FACTOR_E)


class LongestStep:
    """Keeps only steps that no later one exceeds, so durations fall and a look-up is a bisection.

    Every decoding sequence gets a token in each step: the longest step since it joined is the
    longest silence in its stream.
    """

    def __init__(self) -> None:
        self.gaps: Counter[int] = Counter()
        """Gaps between two tokens of a stream, by the ``bucket`` of their length; those of a stall are left out."""
        self._steps: list[int] = []
        self._durations_ps: list[int] = []

    def add(self, step: int, duration_ps: int, gaps: int = 0) -> None:
        """``gaps``: so many streams times steps had this gap between two of their tokens."""
        if gaps:
            self.gaps[bucket(duration_ps)] += gaps
        durations = self._durations_ps
        while durations and durations[-1] <= duration_ps:
            durations.pop()
            self._steps.pop()
        self._steps.append(step)
        durations.append(duration_ps)

    def since(self, step: int) -> int:
        """Picoseconds; 0 when no step was added from ``step`` on."""
        index = bisect_left(self._steps, step)
        return self._durations_ps[index] if index < len(self._steps) else 0
