"""How many requests a second are meant, over time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from math import sqrt

DAY_H = 24.0
DAY_PEAKS_H = (10.0, 20.0)
"""SPEC S1-62."""
PEAK_HALVES_H = (0.5, 1.5)
"""A peak stands for half an hour to either side and has gone after an hour more: both together leave 18 h off peak."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A straight line from one rate to another."""

    duration_s: float
    from_per_s: float
    to_per_s: float

    @property
    def area(self) -> float:
        """Requests that are expected in it."""
        return (self.from_per_s + self.to_per_s) / 2 * self.duration_s

    def time_of(self, area: float) -> float:
        """When so much of the area has passed, by the stable root of the quadratic."""
        slope = (self.to_per_s - self.from_per_s) / self.duration_s
        root = sqrt(max(self.from_per_s**2 + 2 * slope * area, 0.0))
        return 2 * area / (self.from_per_s + root) if area > 0 else 0.0


@dataclass(frozen=True, slots=True)
class RateCurve:
    """Straight pieces, one after the other; a jump between two of them is a step."""

    pieces: tuple[Piece, ...]

    @property
    def duration_s(self) -> float:
        return sum(piece.duration_s for piece in self.pieces)

    @property
    def mean_per_s(self) -> float:
        return sum(piece.area for piece in self.pieces) / self.duration_s

    @property
    def peak_per_s(self) -> float:
        return max(max(piece.from_per_s, piece.to_per_s) for piece in self.pieces)

    def scaled(self, rate: float = 1.0, time: float = 1.0) -> RateCurve:
        """Rates and durations multiplied."""
        return RateCurve(
            tuple(Piece(each.duration_s * time, each.from_per_s * rate, each.to_per_s * rate) for each in self.pieces)
        )

    def times(self, steps: Iterable[float]) -> Iterator[float]:
        """When the area under the curve has grown by each of ``steps``, until the curve ends.

        Steps of mean 1 give a process with this rate; exponential ones a Poisson process (time rescaling: Brown et
        al., Neural Computation 14 (2002)).
        """
        pieces = iter(self.pieces)
        piece, passed_s, area = next(pieces), 0.0, 0.0
        for step in steps:
            area += step
            while area >= piece.area:
                area -= piece.area
                passed_s += piece.duration_s
                following = next(pieces, None)
                if following is None:
                    return
                piece = following
            yield passed_s + piece.time_of(area)


def constant(rate_per_s: float, duration_s: float) -> RateCurve:
    return RateCurve((Piece(duration_s, rate_per_s, rate_per_s),))


def ramp(from_per_s: float, to_per_s: float, duration_s: float) -> RateCurve:
    return RateCurve((Piece(duration_s, from_per_s, to_per_s),))


def spike(rate_per_s: float, factor: float, window_s: tuple[float, float], duration_s: float) -> RateCurve:
    """``factor`` times the rate within the window."""
    begin_s, end_s = window_s
    return series(
        constant(rate_per_s, begin_s),
        constant(rate_per_s * factor, end_s - begin_s),
        constant(rate_per_s, duration_s - end_s),
    )


def series(*curves: RateCurve) -> RateCurve:
    """One after the other; parts without duration are left out."""
    return RateCurve(tuple(piece for curve in curves for piece in curve.pieces if piece.duration_s > 0))


def day(off_peak_per_s: float, peak_per_s: float, duration_s: float) -> RateCurve:
    """Midnight to midnight in ``duration_s``: two peaks, at 10:00 and 20:00, and 18 h off peak (SPEC S1-62)."""
    stand_h, gone_h = PEAK_HALVES_H
    corners = [(0.0, off_peak_per_s)]
    for peak_h in DAY_PEAKS_H:
        corners += [
            (peak_h - gone_h, off_peak_per_s),
            (peak_h - stand_h, peak_per_s),
            (peak_h + stand_h, peak_per_s),
            (peak_h + gone_h, off_peak_per_s),
        ]
    corners.append((DAY_H, off_peak_per_s))
    hour_s = duration_s / DAY_H
    return RateCurve(
        tuple(
            Piece((end_h - begin_h) * hour_s, from_per_s, to_per_s)
            for (begin_h, from_per_s), (end_h, to_per_s) in pairwise(corners)
        )
    )
