from __future__ import annotations

import random
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.load.made_samples import played, sample
from tidegate.load.client_outcome import ClientOutcome
from tidegate.load.played import Played
from tidegate.load.side_by_side import Ratio, interval, side_by_side


def turns(count: int, e2e_s: Callable[[int], float], asks: int = 40, **changes: Any) -> list[Played]:
    return [
        played(
            [sample(turn * 30 + k / 2, e2e_s(turn), outcome=ClientOutcome.OK) for k in range(asks)],
            began_s=turn * 30.0,
            sending_s=30.0,
            **changes,
        )
        for turn in range(count)
    ]


def ratio(found: list[Ratio], figure: str) -> Ratio:
    return next(each for each in found if each.figure == figure)


def test_a_target_that_is_a_fifth_slower_in_every_turn_is_clearly_so() -> None:
    def drift(turn: int) -> float:
        return 1.0 + 0.5 * (turn % 3)

    found = side_by_side(turns(10, drift), turns(10, lambda turn: drift(turn) * 1.2))
    e2e = ratio(found, "E2E P50")
    assert (e2e.ratio, e2e.low, e2e.high, e2e.turns) == pytest.approx((1.2, 1.2, 1.2, 10))
    assert e2e.is_clear
    assert e2e.text == "1.20× (1.20× to 1.20×)"
    assert ratio(found, "TTFT P95").ratio == pytest.approx(1.2)
    assert ratio(found, "TPOT P50").ratio == pytest.approx(1.2)
    assert ratio(found, "answers/s").ratio == 1.0


def test_what_is_the_same_but_for_noise_may_be_chance() -> None:
    lot = random.Random(4)
    first, second = ([lot.uniform(0.8, 1.2) for _ in range(12)] for _ in range(2))
    found = side_by_side(turns(12, lambda turn: first[turn]), turns(12, lambda turn: second[turn]))
    assert not ratio(found, "E2E P50").is_clear
    assert "may be chance" in ratio(found, "E2E P50").text


def test_few_turns_have_a_ratio_and_no_interval() -> None:
    found = ratio(side_by_side(turns(5, lambda _: 1.0), turns(5, lambda _: 2.0)), "E2E P95")
    assert (found.ratio, found.low, found.is_clear) == (2.0, None, False)
    assert "interval unavailable at 5 turns" in found.text


def test_turns_without_a_pair_or_with_too_few_answers_do_not_count() -> None:
    first, second = turns(8, lambda _: 1.0), turns(7, lambda _: 1.0)
    second[0].samples = second[0].samples[:5]
    assert ratio(side_by_side(first, second), "E2E P50").turns == 6
    assert ratio(side_by_side(first, second), "answers/s").turns == 7
    assert side_by_side(first, turns(8, lambda _: 1.0, phase="another")) == []
    assert [each.figure for each in side_by_side(first, turns(8, lambda _: 1.0, asks=5))] == ["answers/s"]


@settings(max_examples=20)
@given(st.lists(st.floats(0.1, 10), min_size=6, max_size=30), st.integers(0, 99))
def test_the_interval_lies_within_what_was_seen(values: list[float], seed: int) -> None:
    low, high = interval(values, Random(seed))
    assert low is not None
    assert high is not None
    assert min(values) <= low <= high <= max(values)
    assert (low, high) == interval(values, Random(seed))
