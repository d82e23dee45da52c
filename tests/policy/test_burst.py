"""When more requests arrive than usual."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.policy.burst import Burst, BurstConfig

CONFIG = BurstConfig()


def flow(burst: Burst, per_s: int, begin: float, seconds: int) -> list[bool]:
    """So many evenly spread arrivals in each second; whether a burst was on at the end of each."""
    seen = []
    for second in range(seconds):
        for index in range(per_s):
            is_on = burst.note(begin + second + index / per_s)
            assert is_on is burst.is_on
        seen.append(burst.is_on)
    return seen


def test_it_is_seen_with_the_request_that_passes_three_times_the_usual_rate() -> None:
    burst = Burst(CONFIG)
    flow(burst, 20, 0.0, 120)
    assert not burst.is_on
    assert burst.usual_per_s == pytest.approx(20.0)
    seen = [burst.note(120.0 + index / 1000) for index in range(61)]
    assert seen == [False] * 60 + [True]
    assert burst.bursts == 2, "the very start of the traffic was one"


def test_a_start_is_a_burst_until_it_has_gone_on_for_a_while() -> None:
    assert flow(Burst(CONFIG), 20, 100.0, 12) == [True] * 6 + [False] * 6


def test_silence_and_then_two_hundred_is_a_burst_at_once() -> None:
    burst = Burst(CONFIG)
    burst.pass_to(0.0)
    burst.pass_to(3.0)
    assert [burst.note(3.0 + index / 1e4) for index in range(200)].index(True) == 9


def test_few_requests_after_a_quiet_night_are_none() -> None:
    burst = Burst(CONFIG)
    flow(burst, 1, 0.0, 30)
    assert not any(flow(burst, 9, 3600.0, 30))


def test_it_ends_after_some_calm_and_not_in_a_short_lull() -> None:
    burst = Burst(CONFIG)
    flow(burst, 20, 0.0, 200)
    assert flow(burst, 200, 200.0, 3) == [True] * 3
    assert flow(burst, 20, 203.0, 4) == [True] * 4
    assert flow(burst, 200, 207.0, 1) == [True]
    assert flow(burst, 20, 208.0, 8) == [True] * 5 + [False] * 3


def test_what_stays_becomes_usual() -> None:
    burst = Burst(CONFIG)
    flow(burst, 20, 0.0, 120)
    seen = flow(burst, 100, 120.0, 180)
    assert seen[0]
    assert not seen[-1]
    assert 30 < seen.index(False) < 150


def test_it_is_over_though_nothing_arrives_any_more() -> None:
    burst = Burst(CONFIG)
    flow(burst, 200, 0.0, 2)
    assert burst.view(1.999)["is_on"]
    assert burst.view(4.0)["is_on"]
    view = burst.view(60.0)
    assert view["is_on"] is False
    assert view["bursts"] == 1


def test_a_window_may_be_of_another_length() -> None:
    burst = Burst(replace(CONFIG, window_s=0.1, least_per_s=60.0))
    assert not any(burst.note(index * 0.06) for index in range(100))
    assert [burst.note(7.0 + index * 0.001) for index in range(20)].index(True) == 5


@given(st.lists(st.floats(0.0, 10.0), max_size=200))
def test_a_rate_is_never_negative_and_time_may_jump(gaps: list[float]) -> None:
    burst, now = Burst(CONFIG), 0.0
    for gap in gaps:
        now += gap
        burst.note(now)
        assert 0.0 <= burst.usual_per_s <= 200.0
    burst.pass_to(now + 1000.0)
    assert not burst.is_on


@pytest.mark.parametrize(
    "wrong", [{"ratio": 1.0}, {"window_s": 0.0}, {"usual_s": 0.0}, {"least_per_s": -1.0}, {"calm_s": -1.0}]
)
def test_impossible_parameters_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="burst needs"):
        BurstConfig(**wrong)
