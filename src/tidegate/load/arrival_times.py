"""When requests are due, whatever becomes of those before (an open loop)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, repeat
from random import Random
from typing import Protocol

from tidegate.load.rate_curve import RateCurve

POISSON = 1.0
"""Shape of the gaps' Gamma distribution at which it is the exponential one."""


class ArrivalTimes(Protocol):
    """Picklable; equal generators give equal times."""

    @property
    def duration_s(self) -> float: ...

    @property
    def mean_per_s(self) -> float: ...

    @property
    def title(self) -> str:
        """For people."""

    def times(self, rng: Random) -> Iterator[float]:
        """Sorted, each in ``0 <= t < duration_s``."""


@dataclass(frozen=True, slots=True)
class Regular:
    """Without chance: constant gaps where the rate is constant."""

    curve: RateCurve
    first: float = 0.0
    """When the first request comes, as a part of a gap; 0: at once."""

    @property
    def duration_s(self) -> float:
        return self.curve.duration_s

    @property
    def mean_per_s(self) -> float:
        return self.curve.mean_per_s

    @property
    def title(self) -> str:
        return f"{self.mean_per_s:.3g}/s, even gaps"

    def times(self, _rng: Random) -> Iterator[float]:
        return self.curve.times(chain((self.first,), repeat(1.0)))


@dataclass(frozen=True, slots=True)
class Drawn:
    """Gaps of a Gamma distribution, squeezed and stretched by the curve.

    ``shape`` is the burstiness of ``vllm bench serve``: 1 is a Poisson process, less is burstier, more is more even.
    The squared coefficient of variation of the gaps is its inverse.
    """

    curve: RateCurve
    shape: float = POISSON

    @property
    def duration_s(self) -> float:
        return self.curve.duration_s

    @property
    def mean_per_s(self) -> float:
        return self.curve.mean_per_s

    @property
    def title(self) -> str:
        kind = "Poisson" if self.shape == POISSON else f"Gamma of shape {self.shape:g}"
        peak = f", at most {self.curve.peak_per_s:.3g}/s" if self.curve.peak_per_s > self.mean_per_s else ""
        return f"{self.mean_per_s:.3g}/s {kind}{peak}"

    def times(self, rng: Random) -> Iterator[float]:
        return self.curve.times(self._steps(rng))

    def _steps(self, rng: Random) -> Iterator[float]:
        if self.shape == POISSON:
            while True:
                yield rng.expovariate(1.0)
        while True:
            yield rng.gammavariate(self.shape, 1 / self.shape)


@dataclass(frozen=True, slots=True)
class Listed:
    """Times that are known beforehand: a trace's, or many at once."""

    at_s: tuple[float, ...]
    """Sorted."""
    duration_s: float

    @property
    def mean_per_s(self) -> float:
        return sum(at_s < self.duration_s for at_s in self.at_s) / self.duration_s

    @property
    def title(self) -> str:
        return f"{len(self.at_s)} known times"

    def times(self, _rng: Random) -> Iterator[float]:
        return (at_s for at_s in self.at_s if at_s < self.duration_s)
