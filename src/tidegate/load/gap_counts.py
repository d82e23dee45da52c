"""Times between the pieces of many streams, counted in buckets."""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil, log

ALPHA = 0.01
"""Relative error of any quantile (the control sketches' is 5 %)."""
_GAMMA = (1 + ALPHA) / (1 - ALPHA)
_LOG_GAMMA = log(_GAMMA)
LEAST_S = 1e-5


class GapCounts:
    """DDSketch buckets (Masson et al. 2019), without forgetting: exact to ``ALPHA``, and two add up to one."""

    __slots__ = ("buckets", "count")

    def __init__(self) -> None:
        self.buckets: dict[int, int] = {}
        self.count = 0

    def add(self, gap_s: float) -> None:
        bucket = 0 if gap_s <= LEAST_S else ceil(log(gap_s / LEAST_S) / _LOG_GAMMA)
        self.buckets[bucket] = self.buckets.get(bucket, 0) + 1
        self.count += 1

    def merge(self, buckets: Iterable[tuple[int, int]]) -> None:
        for bucket, count in buckets:
            self.buckets[bucket] = self.buckets.get(bucket, 0) + count
            self.count += count

    def quantile(self, share: float) -> float | None:
        """None of nothing."""
        left = ceil(share * self.count)
        for bucket, count in sorted(self.buckets.items()):
            left -= count
            if left <= 0:
                return value_of(bucket)
        return None


def value_of(bucket: int) -> float:
    """The middle of a bucket, in seconds."""
    return LEAST_S if bucket == 0 else float(2 * LEAST_S * _GAMMA**bucket / (_GAMMA + 1))
