from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.policy.lengths import LengthHistory, class_of


def learned(*outputs: int, most: int = 256) -> LengthHistory:
    history = LengthHistory()
    for output in outputs:
        history.record(most, output)
    return history


def test_without_a_history_the_whole_bound_is_expected() -> None:
    assert LengthHistory().left_tokens(256, 0, 0.5) == 256
    assert learned(*[10] * 7).left_tokens(256, 6, 0.5) == 250


def test_a_quantile_of_the_history_is_expected() -> None:
    history = learned(*range(10, 110, 10))
    assert history.left_tokens(256, 0, 0.5) == 60
    assert history.left_tokens(256, 0, 0.9) == 100


def test_what_is_left_is_judged_among_those_that_were_longer() -> None:
    history = learned(*range(10, 110, 10))
    assert history.left_tokens(256, 50, 0.5) == 80 - 50


def test_one_that_outlived_nearly_all_is_expected_to_use_its_bound() -> None:
    history = learned(*range(10, 110, 10))
    assert history.left_tokens(256, 70, 0.0) == 80 - 70
    assert history.left_tokens(256, 80, 0.0) == 256 - 80


def test_bounds_of_one_power_of_two_share_a_history_as_shares() -> None:
    history = learned(*[100] * 10, most=200)
    assert class_of(128) == class_of(255) != class_of(256)
    assert history.left_tokens(150, 0, 0.5) == 75
    assert history.left_tokens(256, 0, 0.5) == 256


def test_clients_that_use_their_whole_bound_are_recognised_beside_those_that_do_not() -> None:
    history = learned(*[20] * 10, most=250)
    for most in (64, 70, 90, 100, 120, 80, 75, 99, 111, 127):
        history.record(most, most)
    assert history.left_tokens(100, 0, 0.5) == 100
    assert history.left_tokens(250, 0, 0.5) == 20


def test_old_answers_are_forgotten() -> None:
    history = LengthHistory(most=10)
    for output in [200] * 10 + [10] * 10:
        history.record(256, output)
    assert len(history) == 10
    assert history.left_tokens(256, 0, 0.99) == 10


@given(
    outputs=st.lists(st.integers(1, 300), max_size=60),
    most=st.integers(1, 300),
    done=st.integers(0, 300),
    quantile=st.floats(0.01, 0.99),
)
def test_what_is_expected_lies_between_one_and_what_the_bound_leaves(
    outputs: list[int], most: int, done: int, quantile: float
) -> None:
    history = LengthHistory(most=30)
    for output in outputs:
        history.record(most, output)
    assert 1 <= history.left_tokens(most, done, quantile) <= max(1, most - done)


@given(outputs=st.lists(st.tuples(st.integers(1, 400), st.integers(1, 400)), max_size=80))
def test_a_history_outlives_a_restart(outputs: list[tuple[int, int]]) -> None:
    before, after = LengthHistory(most=20), LengthHistory(most=20)
    for most, output in outputs:
        before.record(most, output)
    after.restore(json.loads(json.dumps(before.dump())))
    assert after.dump() == before.dump()
    assert len(after) == len(before)


@pytest.mark.parametrize(
    "state",
    [
        [],
        {},
        {"version": 2, "classes": {}},
        {"version": 1},
        {"version": 1, "classes": {"x": []}},
        {"version": 1, "classes": {"9": 0.5}},
        {"version": 1, "classes": {"9": [1.5]}},
        {"version": 1, "classes": {"9": [True]}},
        {"version": 1, "classes": {"9": ["0.5"]}},
        {"version": 1, "classes": {"9": [float("nan")]}},
    ],
)
def test_anything_else_is_refused_and_changes_nothing(state: Any) -> None:
    history = learned(*[10] * 10)
    before = history.dump()
    with pytest.raises(ValueError):
        history.restore(state)
    assert history.dump() == before
