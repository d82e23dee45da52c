"""A bucket of one minute's worth."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.policy.bucket import NEVER_S, Bucket

STEPS = st.lists(st.tuples(st.floats(0.0, 30.0), st.integers(1, 60)), max_size=40)


def test_it_is_full_at_first_and_fills_steadily() -> None:
    bucket = Bucket()
    assert bucket.wait_s(60, 60, 0.0) == 0.0
    bucket.take(60, 60, 0.0)
    assert bucket.wait_s(1, 60, 0.0) == 1.0
    assert bucket.wait_s(30, 60, 20.0) == pytest.approx(10.0)
    assert bucket.settle_to(60, 20.0) == pytest.approx(40.0)
    assert bucket.settle_to(60, 300.0) == 0.0


def test_what_is_taken_late_is_missing_from_then_on() -> None:
    bucket = Bucket()
    bucket.take(30, 60, 1000.0)
    assert bucket.settle_to(60, 1010.0) == pytest.approx(20.0)


def test_more_than_it_ever_holds_never_comes() -> None:
    assert Bucket().wait_s(61, 60, 0.0) == NEVER_S


def test_what_was_used_beyond_becomes_debt_and_what_was_not_used_comes_back() -> None:
    bucket = Bucket()
    bucket.take(20, 60, 0.0)
    bucket.give_back(-80, 60, 0.0)
    assert bucket.wait_s(60, 60, 0.0) == 100.0
    bucket.give_back(500, 60, 0.0)
    assert bucket.spent == 0.0


def test_another_rate_takes_what_was_spent_over() -> None:
    bucket = Bucket()
    bucket.take(60, 60, 0.0)
    assert bucket.wait_s(60, 120, 0.0) == 0.0
    assert bucket.wait_s(60, 90, 0.0) == pytest.approx(20.0)


def test_a_clock_that_stands_still_changes_nothing() -> None:
    bucket = Bucket()
    bucket.take(30, 60, 0.0)
    assert bucket.settle_to(60, 10.0) == pytest.approx(20.0)
    assert bucket.settle_to(60, 10.0) == bucket.settle_to(60, 9.0) == pytest.approx(20.0)


@given(STEPS)
def test_no_stretch_of_time_gives_more_than_a_minutes_worth_and_its_rate(steps: list[tuple[float, int]]) -> None:
    bucket, now, taken = Bucket(), 0.0, 0
    for elapsed_s, amount in steps:
        now += elapsed_s
        if bucket.wait_s(amount, 60, now) == 0.0:
            bucket.take(amount, 60, now)
            taken += amount
        assert taken <= 60 + now * 1.0 + 1e-6


@given(STEPS)
def test_whoever_waits_as_long_as_it_was_told_is_served(steps: list[tuple[float, int]]) -> None:
    bucket, now = Bucket(), 0.0
    for elapsed_s, amount in steps:
        now += elapsed_s
        wait_s = bucket.wait_s(amount, 60, now)
        now += wait_s + 1e-9
        assert bucket.wait_s(amount, 60, now) <= 1e-6
        bucket.take(amount, 60, now)
