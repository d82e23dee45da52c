"""What is learned from what happened: drain rates, line fits, means."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.policy.estimates import DrainMeter, LatencyFit, Mean


def drained(tokens_each: int, period_s: float, until: float, *, splits: int = 1) -> DrainMeter:
    """A standing backlog from which a ticket goes every ``period_s``."""
    meter = DrainMeter()
    meter.begin(0.0)
    now = 0.0
    while now + period_s <= until:
        for part in range(1, splits):
            meter.tokens_per_s(now + period_s * part / splits)
        now += period_s
        meter.served(tokens_each, now)
    return meter


def test_a_steady_drain_is_measured_as_it_is() -> None:
    meter = drained(100, 0.1, 60.0)
    assert meter.tokens_per_s(60.0) == pytest.approx(1000, rel=0.02)
    assert meter.samples == pytest.approx(600, abs=1)


@given(st.integers(1, 20))
def test_the_rate_is_the_same_however_calls_split_the_time(splits: int) -> None:
    whole, split = drained(100, 0.5, 20.0), drained(100, 0.5, 20.0, splits=splits)
    assert split.tokens_per_s(20.0) == pytest.approx(whole.tokens_per_s(20.0))


def test_idle_time_counts_for_nothing() -> None:
    meter = drained(100, 0.1, 10.0)
    meter.end(10.0)
    before = meter.tokens_per_s(10.0)
    assert before is not None
    assert meter.tokens_per_s(14.0) == pytest.approx(before)


def test_without_half_a_second_of_backlog_nothing_is_known() -> None:
    meter = DrainMeter()
    assert meter.tokens_per_s(5.0) is None
    meter.begin(5.0)
    meter.served(100, 5.4)
    assert meter.tokens_per_s(5.4) is None
    assert meter.tokens_per_s(5.6) is not None


def test_a_backlog_of_which_nothing_was_served_has_no_rate() -> None:
    meter = DrainMeter()
    meter.begin(0.0)
    assert meter.tokens_per_s(10.0) is None


def test_the_last_seconds_weigh_most() -> None:
    meter = drained(100, 0.1, 30.0)
    now = 30.0
    for _ in range(100):
        now += 0.1
        meter.served(300, now)
    assert meter.tokens_per_s(now) == pytest.approx(3000 - 2000 * 0.135, rel=0.03)


def test_a_clock_that_stands_still_changes_nothing() -> None:
    meter = drained(100, 0.1, 10.0)
    assert meter.tokens_per_s(10.0) == meter.tokens_per_s(10.0) == meter.tokens_per_s(9.0)


@given(st.floats(0.0, 5.0), st.floats(1e-5, 0.01), st.lists(st.integers(1, 5000), min_size=5, max_size=100))
def test_a_line_is_recovered(base_s: float, per_unit_s: float, units: list[int]) -> None:
    units = [*units, 1, 4000]
    fit = LatencyFit()
    for each in units:
        fit.learn(each, base_s + per_unit_s * each)
    assert fit.knows_slope
    assert fit.per_unit_s == pytest.approx(per_unit_s, rel=1e-3, abs=1e-8)
    assert fit.predict_s(2000) == pytest.approx(base_s + per_unit_s * 2000, rel=1e-3)


def test_units_that_are_alike_tell_no_slope_but_a_mean() -> None:
    fit = LatencyFit()
    for number in range(100):
        fit.learn(1000 + number % 3, 2.0)
    assert not fit.knows_slope
    assert fit.per_unit_s == 0.0
    assert fit.predict_s(5000) == pytest.approx(2.0)


def test_before_any_sample_nothing_is_predicted_and_one_sample_is_its_own_prediction() -> None:
    fit = LatencyFit()
    assert (fit.predict_s(100), fit.samples) == (0.0, 0)
    fit.learn(100, 3.0)
    assert fit.predict_s(100) == pytest.approx(3.0)
    assert fit.samples == 1
    assert not fit.knows_slope


def test_latency_that_falls_with_length_is_taken_as_flat() -> None:
    fit = LatencyFit()
    for units in range(1, 100):
        fit.learn(units, 1.0 - units / 1000)
    assert fit.per_unit_s == 0.0
    assert fit.predict_s(50) == pytest.approx(0.95, rel=0.02)


def test_what_the_engine_was_is_forgotten_after_some_hundred_samples() -> None:
    fit = LatencyFit()
    for number in range(1000):
        fit.learn(1 + number % 1000, 0.001 * (1 + number % 1000))
    for number in range(1000):
        fit.learn(1 + number % 1000, 0.002 * (1 + number % 1000))
    assert fit.per_unit_s == pytest.approx(0.002, rel=0.01)


@given(st.lists(st.tuples(st.floats(0, 1e5), st.floats(0, 1e4)), max_size=50), st.floats(0, 1e5))
def test_a_prediction_is_a_number_that_is_not_negative(samples: list[tuple[float, float]], units: float) -> None:
    fit = LatencyFit()
    for each, seconds in samples:
        fit.learn(each, seconds)
    assert 0.0 <= fit.predict_s(units) < float("inf")


def test_a_fit_comes_back_as_it_was() -> None:
    fit, other = LatencyFit(), LatencyFit()
    for units in range(100):
        fit.learn(units, 0.5 + 0.01 * units)
    other.restore(fit.dump())
    assert other.dump() == fit.dump()
    assert (other.predict_s(77), other.knows_slope, other.samples) == (fit.predict_s(77), True, 100)


def test_a_mean_starts_plain_and_then_follows() -> None:
    mean = Mean()
    assert mean.value == 0.0
    for value in (2.0, 4.0, 9.0):
        mean.add(value)
    assert mean.value == pytest.approx(5.0)
    for _ in range(400):
        mean.add(100.0)
    assert mean.value == pytest.approx(100.0, rel=0.01)
