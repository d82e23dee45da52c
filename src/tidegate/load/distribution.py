"""A set of durations in a few numbers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import fsum, sqrt
from statistics import fmean

from tidegate.simulate.quantile import quantile

LEAST_FOR_P99 = 100
"""Below so many values a P99 is the largest of them, and pages say so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution:
    """Exact, not estimated. Seconds."""

    count: int
    mean: float
    std: float
    least: float
    p50: float
    p90: float
    p95: float
    p99: float
    p999: float
    most: float

    @property
    def jitter(self) -> float | None:
        """P99 / P50 (SPEC S2-26); None where the median is 0."""
        return self.p99 / self.p50 if self.p50 > 0 else None


def distribution(values: Iterable[float]) -> Distribution | None:
    """None of nothing."""
    ordered = sorted(values)
    if not ordered:
        return None
    mean = fmean(ordered)
    return Distribution(
        count=len(ordered),
        mean=mean,
        # In floats: statistics.pstdev goes by fractions, which takes a second for each million.
        std=sqrt(fsum([(value - mean) * (value - mean) for value in ordered]) / len(ordered)),
        least=ordered[0],
        p50=quantile(ordered, 0.5),
        p90=quantile(ordered, 0.9),
        p95=quantile(ordered, 0.95),
        p99=quantile(ordered, 0.99),
        p999=quantile(ordered, 0.999),
        most=ordered[-1],
    )
