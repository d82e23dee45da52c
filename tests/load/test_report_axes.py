from __future__ import annotations

import pytest

from tidegate.load.report_axes import (
    clock,
    duration_axis,
    number_axis,
    percentile_axis,
    short_seconds,
    time_axis,
    token_axis,
)


def names(axis: object) -> list[str]:
    return [text for _, text in getattr(axis, "named")]  # noqa: B009 - any axis


@pytest.mark.parametrize(
    ("values", "low", "high"),
    [([0.03, 12.0], 0.02, 20.0), ([1.0, 1.0], 0.5, 2.0), ([], 0.1, 1.0), ([0.0, 0.5], 0.2, 1.0)],
)
def test_durations_stand_between_round_numbers(values: list[float], low: float, high: float) -> None:
    axis = duration_axis("", values)
    assert (axis.low, axis.high) == pytest.approx((low, high))


def test_few_decades_have_fine_ticks_and_many_have_decades() -> None:
    assert names(duration_axis("", [0.1, 1.0])) == ["100 ms", "200 ms", "500 ms", "1 s"]
    assert names(duration_axis("", [0.00001, 100.0]))[:3] == ["10 µs", "100 µs", "1 ms"]


def test_numbers_begin_at_zero_and_end_at_a_round_one() -> None:
    assert names(number_axis("", [11.2])) == ["0", "2", "4", "6", "8", "10", "12"]
    assert names(number_axis("", [])) == ["0", "0.2", "0.4", "0.6", "0.8", "1"]
    assert number_axis("", [0.0]).high == 1.0
    assert number_axis("", [9.9]).high == pytest.approx(10.0)


def test_time_has_few_ticks_at_round_moments() -> None:
    assert names(time_axis(0.0, 2100.0)) == ["0:00", "5:00", "10:00", "15:00", "20:00", "25:00", "30:00", "35:00"]
    assert names(time_axis(3.0, 3.5)) == ["0:03", "0:04"]
    assert len(names(time_axis(0.0, 1e6))) <= 12
    assert clock(7325.0) == "2:02:05"


def test_percentiles_go_as_far_as_the_values_do() -> None:
    assert names(percentile_axis(50)) == ["0 %", "50 %", "90 %", "99 %"]
    assert names(percentile_axis(20_000))[-1] == "99.99 %"


def test_tokens_stand_in_powers_of_two() -> None:
    assert names(token_axis([100.0, 900.0])) == ["64", "128", "256", "512", "1024"]
    assert len(names(token_axis([1.0, 1e6]))) <= 12
    assert short_seconds(0.00025) == "250 µs"
