"""Rates and dispersion of arrivals, measured against what they are said to be."""

from __future__ import annotations

from itertools import pairwise
from random import Random
from statistics import fmean, pvariance

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.load.arrival_times import ArrivalTimes, Drawn, Listed, Regular
from tidegate.load.rate_curve import Piece, RateCurve, constant, day, ramp, series, spike

PIECES = st.lists(
    st.builds(Piece, st.floats(0.1, 20.0), st.floats(0.0, 30.0), st.floats(0.0, 30.0)), min_size=1, max_size=5
)


def times(arrivals: ArrivalTimes, seed: int = 1) -> list[float]:
    return [*arrivals.times(Random(seed))]


def squared_variation(gaps: list[float]) -> float:
    return pvariance(gaps) / fmean(gaps) ** 2


def test_even_gaps_are_all_alike_and_fill_the_time() -> None:
    found = times(Regular(constant(5.0, 10.0)))
    assert len(found) == 50
    assert found[0] == 0.0
    assert all(abs(later - earlier - 0.2) < 1e-9 for earlier, later in pairwise(found))
    assert times(Regular(constant(5.0, 10.0), first=0.5))[0] == pytest.approx(0.1)


@pytest.mark.parametrize("shape", [0.25, 0.5, 1.0, 4.0])
def test_gamma_gaps_have_the_mean_and_the_dispersion_of_their_shape(shape: float) -> None:
    found = times(Drawn(constant(100.0, 600.0), shape))
    assert len(found) / 600.0 == pytest.approx(100.0, rel=0.03)
    gaps = [later - earlier for earlier, later in pairwise(found)]
    assert squared_variation(gaps) == pytest.approx(1 / shape, rel=0.08)


def test_a_poisson_process_has_as_much_variance_as_mean_in_every_second() -> None:
    found = times(Drawn(constant(20.0, 2000.0)))
    counts = [0] * 2000
    for at_s in found:
        counts[int(at_s)] += 1
    assert pvariance(counts) / fmean(counts) == pytest.approx(1.0, abs=0.1)


def test_a_ramp_rises_in_a_straight_line() -> None:
    found = times(Drawn(ramp(0.0, 100.0, 100.0)))
    assert len(found) == pytest.approx(5000, rel=0.05)
    firsts = sum(at_s < 50.0 for at_s in found)
    assert firsts / len(found) == pytest.approx(0.25, abs=0.02)


def test_a_spike_is_so_many_times_the_rate_within_its_window_only() -> None:
    found = times(Drawn(spike(50.0, 2.0, (60.0, 120.0), 300.0)))
    inside = sum(60.0 <= at_s < 120.0 for at_s in found) / 60.0
    outside = sum(not 60.0 <= at_s < 120.0 for at_s in found) / 240.0
    assert inside == pytest.approx(100.0, rel=0.05)
    assert outside == pytest.approx(50.0, rel=0.05)


def test_a_spike_may_begin_at_once_and_last_to_the_end() -> None:
    assert len(spike(1.0, 2.0, (0.0, 5.0), 10.0).pieces) == 2
    assert len(spike(1.0, 2.0, (0.0, 10.0), 10.0).pieces) == 1


def test_a_day_peaks_at_ten_and_at_twenty_and_is_quiet_for_eighteen_hours() -> None:
    curve = day(1.0, 4.0, 24.0)
    assert curve.duration_s == pytest.approx(24.0)
    assert curve.peak_per_s == 4.0
    found = times(Drawn(curve.scaled(rate=200.0)))
    by_hour = [sum(int(at_s) == hour for at_s in found) / 200.0 for hour in range(24)]
    assert max(range(24), key=by_hour.__getitem__) in {9, 10, 19, 20}
    quiet = sum(piece.duration_s for piece in curve.pieces if piece.from_per_s == piece.to_per_s == 1.0)
    assert quiet == pytest.approx(18.0)
    assert by_hour[3] == pytest.approx(1.0, rel=0.25)


def test_scaling_multiplies_rate_and_time() -> None:
    scaled = spike(10.0, 3.0, (1.0, 2.0), 4.0).scaled(rate=0.5, time=2.0)
    assert (scaled.duration_s, scaled.peak_per_s) == (8.0, 15.0)
    assert scaled.mean_per_s == pytest.approx(spike(10.0, 3.0, (1.0, 2.0), 4.0).mean_per_s * 0.5)


def test_known_times_are_kept_until_the_phase_ends() -> None:
    known = Listed((0.0, 0.0, 1.0, 5.0), 2.0)
    assert times(known) == [0.0, 0.0, 1.0]
    assert known.mean_per_s == 1.5
    assert "4 known" in known.title


def test_titles_say_what_comes() -> None:
    assert Drawn(constant(4.0, 1.0)).title == "4/s Poisson"
    assert Drawn(spike(4.0, 2.0, (0.0, 0.5), 1.0), 0.5).title == "6/s Gamma of shape 0.5, at most 8/s"
    assert Regular(constant(4.0, 1.0)).title == "4/s, even gaps"
    assert Regular(constant(4.0, 1.0)).mean_per_s == Drawn(constant(4.0, 1.0)).mean_per_s


@settings(max_examples=60, deadline=None)
@given(pieces=PIECES, shape=st.sampled_from([0.0, 0.3, 1.0, 5.0]), seed=st.integers(0, 2**32))
def test_times_are_sorted_and_lie_within_the_phase(pieces: list[Piece], shape: float, seed: int) -> None:
    curve = RateCurve(tuple(pieces))
    arrivals: ArrivalTimes = Drawn(curve, shape) if shape else Regular(curve)
    found = times(arrivals, seed)
    assert found == sorted(found)
    assert all(0.0 <= at_s < arrivals.duration_s + 1e-9 for at_s in found)
    assert found == times(arrivals, seed)


@settings(max_examples=60, deadline=None)
@given(pieces=PIECES)
def test_even_arrivals_are_as_many_as_the_area_under_the_curve(pieces: list[Piece]) -> None:
    curve = RateCurve(tuple(pieces))
    area = curve.mean_per_s * curve.duration_s
    assert abs(len(times(Regular(curve))) - area) <= 1 + 1e-6


def test_a_series_leaves_out_what_has_no_duration() -> None:
    assert series(constant(1.0, 0.0), constant(2.0, 1.0)).pieces == constant(2.0, 1.0).pieces
