"""A quantile sketch that forgets: log-spaced buckets in a ring of time slices.

DDSketch buckets (γ = (1+α)/(1−α), Masson et al. 2019) give any quantile within a relative error α;
α = 5 % here, enough for control. Slices make expiry an exact subtraction and merging an addition,
which t-digests cannot do.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from math import ceil, log

ALPHA = 0.05
_GAMMA = (1 + ALPHA) / (1 - ALPHA)
_LOG_GAMMA = log(_GAMMA)
LEAST_S = 0.001
MOST_S = 7200.0
_BUCKETS = ceil(log(MOST_S / LEAST_S) / _LOG_GAMMA) + 2
SLICES = 12


class Sketch:
    """Latencies in seconds over the last ``SLICES`` × ``slice_s`` seconds, clamped to 1 ms … 2 h."""

    __slots__ = ("_counts", "_slice", "_slices", "count", "slice_s")

    def __init__(self, slice_s: float = 25.0) -> None:
        self.slice_s = slice_s
        self.count = 0
        self._counts = [0] * _BUCKETS
        self._slices: list[dict[int, int]] = [{} for _ in range(SLICES)]
        self._slice = 0

    def add(self, seconds: float, now: float) -> None:
        self._turn(now)
        bucket = 0 if seconds <= LEAST_S else min(_BUCKETS - 1, ceil(log(seconds / LEAST_S) / _LOG_GAMMA))
        current = self._slices[self._slice % SLICES]
        current[bucket] = current.get(bucket, 0) + 1
        self._counts[bucket] += 1
        self.count += 1

    def counts(self, now: float) -> list[int]:
        """How many values each bucket holds now."""
        self._turn(now)
        return self._counts

    def _turn(self, now: float) -> None:
        current = int(now / self.slice_s)
        if current <= self._slice:
            return
        for gone in range(max(self._slice + 1, current - SLICES + 1), current + 1):
            old = self._slices[gone % SLICES]
            for bucket, count in old.items():
                self._counts[bucket] -= count
                self.count -= count
            self._slices[gone % SLICES] = {}
        self._slice = current


def quantile(sketches: Sequence[Sketch], q: float, now: float, least: int = 1) -> float | None:
    """The q-quantile in seconds over several sketches, or None when they hold fewer than ``least``."""
    columns = [sketch.counts(now) for sketch in sketches]
    total = sum(sketch.count for sketch in sketches)
    if total < max(1, least):
        return None
    counts = columns[0] if len(columns) == 1 else [sum(column) for column in zip(*columns, strict=True)]
    bucket = bisect_right([*accumulate(counts)], q * (total - 1))
    return LEAST_S if bucket == 0 else LEAST_S * 2 * _GAMMA**bucket / (_GAMMA + 1)
