"""The retry allowance: a share of the requests and a little time, never more."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.policy.retries import RetriesConfig, RetryAllowance

CONFIG = RetriesConfig()
AT_FIRST = 10.0


@given(st.lists(st.tuples(st.integers(0, 30), st.floats(0.0, 2.0), st.integers(0, 10)), max_size=60))
def test_retries_never_pass_the_share_of_the_requests_plus_the_floor(steps: list[tuple[int, float, int]]) -> None:
    allowance, now, requests, retries = RetryAllowance(CONFIG, 0.0), 0.0, 0, 0
    for admitted, passed_s, wanted in steps:
        now += passed_s
        for _ in range(admitted):
            requests += 1
            allowance.admitted()
        retries += sum(allowance.spend(now) for _ in range(wanted))
        assert retries <= AT_FIRST + 0.1 * requests + 1.0 * now + 1e-6
        assert 0.0 <= allowance.left <= CONFIG.most


def test_what_is_saved_is_bounded() -> None:
    allowance = RetryAllowance(CONFIG, 0.0)
    for _ in range(10_000):
        allowance.admitted()
    assert allowance.left == CONFIG.most
    assert sum(allowance.spend(1e6) for _ in range(1000)) == 100


def test_a_retry_needs_a_whole_one() -> None:
    allowance = RetryAllowance(replace(CONFIG, floor_per_s=0.0, most=1.0), 0.0)
    assert allowance.spend(0.0)
    for _ in range(9):
        allowance.admitted()
    assert not allowance.spend(100.0)
    allowance.admitted()
    allowance.admitted()
    assert allowance.spend(100.0)


def test_the_floor_trickles_with_time_and_a_clock_that_goes_back_gives_nothing() -> None:
    allowance = RetryAllowance(replace(CONFIG, ratio=0.0), 100.0)
    assert sum(allowance.spend(100.0) for _ in range(20)) == 10
    assert not allowance.spend(50.0)
    assert not allowance.spend(50.9)
    assert allowance.spend(51.0)


def test_switched_off_there_are_none() -> None:
    assert not RetryAllowance(replace(CONFIG, enabled=False), 0.0).spend(1000.0)


@pytest.mark.parametrize("wrong", [{"ratio": -0.1}, {"ratio": 1.1}, {"floor_per_s": -1.0}, {"most": 0.5}])
def test_impossible_parameters_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="retries need"):
        replace(CONFIG, **wrong)  # type: ignore[arg-type]  # one field, of its own type
