"""The part of a client's patience that may be spent waiting."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.policy.margin import Margin, MarginConfig

CONFIG = MarginConfig()


def judged(margin: Margin, late: int, windows: int = 1) -> Margin:
    for _ in range(windows):
        for number in range(margin.config.window):
            margin.record(late=number < late)
    return margin


def test_it_starts_at_the_most_and_falls_while_too_many_come_late() -> None:
    margin = Margin(CONFIG)
    assert margin.value == 0.85
    assert judged(margin, late=2).value == pytest.approx(0.82)
    assert judged(margin, late=50, windows=10).value == 0.7


def test_it_stands_still_between_the_two_shares_and_rises_below_them() -> None:
    margin = judged(Margin(CONFIG), late=50, windows=10)
    assert judged(margin, late=1).value == 0.7
    assert judged(margin, late=0).value == pytest.approx(0.71)
    assert judged(margin, late=0, windows=100).value == 0.85


def test_it_moves_only_with_a_full_window() -> None:
    margin = Margin(CONFIG)
    for _ in range(49):
        margin.record(late=True)
    assert margin.value == 0.85
    margin.record(late=True)
    assert margin.value < 0.85


@given(st.lists(st.booleans(), max_size=500))
def test_it_stays_within_its_bounds(lates: list[bool]) -> None:
    margin = Margin(replace(CONFIG, window=3))
    for late in lates:
        margin.record(late=late)
        assert 0.7 <= margin.value <= 0.85


def test_a_reload_brings_it_within_the_new_bounds() -> None:
    margin = Margin(CONFIG)
    margin.reconfigure(MarginConfig(least=0.5, most=0.6))
    assert margin.value == 0.6
    margin.reconfigure(MarginConfig(least=1.0, most=1.0))
    assert margin.value == 1.0


@pytest.mark.parametrize(
    "wrong",
    [{"least": 0.0}, {"least": 0.9}, {"most": 1.1}, {"early_share": 0.03}, {"early_share": -0.1}, {"window": 0}],
)
def test_impossible_parameters_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="margin needs"):
        replace(CONFIG, **wrong)  # type: ignore[arg-type]  # one field, of its own type


@pytest.mark.parametrize("fields", [{"length_power": -1.0}, {"class_share": 0.0}, {"class_share": 1.1}])
def test_a_negative_power_and_no_share_of_a_wait_are_refused(fields: dict[str, float]) -> None:
    assert MarginConfig(length_power=0.0, class_share=1.0).length_power == 0.0
    with pytest.raises(ValueError, match="length_power >= 0 and 0 < class_share <= 1"):
        MarginConfig(**fields)  # type: ignore[arg-type]  # parts of the configuration by name, one type each
