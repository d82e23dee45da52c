"""Dynamic timeouts: clamped, learned from what went well, never shortened by what was cut short."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.policy.timeouts import (
    MOST_KEYS,
    Allowed,
    Key,
    Phase,
    PhaseConfig,
    Timeouts,
    TimeoutsConfig,
    timing_key,
)

CONFIG = TimeoutsConfig(
    first_byte=PhaseConfig(floor_s=1.0, ceiling_s=100.0, default_s=50.0),
    gap=PhaseConfig(floor_s=1.0, ceiling_s=100.0, default_s=50.0),
    total=PhaseConfig(floor_s=1.0, ceiling_s=100.0, default_s=50.0),
)
KEY: Key = ("a", "interactive", 0)
DEFAULT = Allowed(50.0, 50.0, 50.0)


def taught(*samples: tuple[Key, Phase, float, int], config: TimeoutsConfig = CONFIG) -> Timeouts:
    timeouts = Timeouts(config)
    for key, phase, seconds, times in samples:
        for _ in range(times):
            timeouts.learn(key, phase, seconds, 0.0)
    return timeouts


def test_before_enough_samples_the_default_holds() -> None:
    timeouts = taught((KEY, Phase.TOTAL, 2.0, 29))
    assert timeouts.allowed(KEY, 0.0) == DEFAULT
    timeouts.learn(KEY, Phase.TOTAL, 2.0, 0.0)
    assert timeouts.allowed(KEY, 1.0).total_s == pytest.approx(6.0, rel=0.05)


def test_each_phase_is_learned_by_itself() -> None:
    timeouts = taught((KEY, Phase.FIRST_BYTE, 1.0, 30), (KEY, Phase.GAP, 2.0, 30), (KEY, Phase.TOTAL, 4.0, 30))
    allowed = timeouts.allowed(KEY, 0.0)
    assert allowed.first_byte_s == pytest.approx(3.0, rel=0.05)
    assert allowed.gap_s == pytest.approx(6.0, rel=0.05)
    assert allowed.total_s == pytest.approx(12.0, rel=0.05)


def test_it_is_three_times_the_ninetieth_percentile() -> None:
    timeouts = taught((KEY, Phase.GAP, 1.0, 89), (KEY, Phase.GAP, 10.0, 11))
    assert timeouts.allowed(KEY, 0.0).gap_s == pytest.approx(30.0, rel=0.05)
    timeouts = taught((KEY, Phase.GAP, 1.0, 91), (KEY, Phase.GAP, 10.0, 9))
    assert timeouts.allowed(KEY, 0.0).gap_s == pytest.approx(3.0, rel=0.05)


@given(st.lists(st.floats(0.0, 1e5), min_size=30, max_size=60))
def test_whatever_was_learned_it_stays_between_floor_and_ceiling(seconds: list[float]) -> None:
    timeouts = taught(*((KEY, Phase.FIRST_BYTE, each, 1) for each in seconds))
    assert 1.0 <= timeouts.allowed(KEY, 0.0).first_byte_s <= 100.0


def test_a_key_with_few_samples_falls_back_to_its_class_then_to_its_upstream_then_to_the_default() -> None:
    sibling, cousin, stranger = ("a", "interactive", 3), ("a", "batch", 0), ("b", "interactive", 0)
    timeouts = taught((cousin, Phase.TOTAL, 10.0, 30))
    assert timeouts.allowed(KEY, 0.0).total_s == pytest.approx(30.0, rel=0.05)
    timeouts = taught((cousin, Phase.TOTAL, 10.0, 30), (sibling, Phase.TOTAL, 5.0, 30))
    assert timeouts.allowed(KEY, 0.0).total_s == pytest.approx(15.0, rel=0.05)
    timeouts = taught((cousin, Phase.TOTAL, 10.0, 30), (sibling, Phase.TOTAL, 5.0, 30), (KEY, Phase.TOTAL, 2.0, 30))
    assert timeouts.allowed(KEY, 0.0).total_s == pytest.approx(6.0, rel=0.05)
    assert timeouts.allowed(stranger, 0.0) == DEFAULT


def test_wider_keys_add_up_what_the_narrow_ones_hold() -> None:
    parts = [("a", "interactive", bucket) for bucket in range(3)]
    timeouts = taught(*((part, Phase.GAP, 3.0, 10) for part in parts))
    assert timeouts.allowed(("a", "interactive", 9), 0.0).gap_s == pytest.approx(9.0, rel=0.05)


def test_what_is_older_than_five_minutes_is_forgotten() -> None:
    timeouts = taught((KEY, Phase.TOTAL, 2.0, 30))
    assert timeouts.allowed(KEY, 299.0) != DEFAULT
    assert timeouts.allowed(KEY, 301.0) == DEFAULT


def test_a_timeout_is_worked_out_anew_once_a_second() -> None:
    timeouts = taught((KEY, Phase.TOTAL, 2.0, 30))
    first = timeouts.allowed(KEY, 0.0)
    for _ in range(300):
        timeouts.learn(KEY, Phase.TOTAL, 20.0, 0.5)
    assert timeouts.allowed(KEY, 0.99) is first
    assert timeouts.allowed(KEY, 1.0).total_s == pytest.approx(60.0, rel=0.05)


@given(
    st.lists(st.floats(0.01, 40.0), max_size=60),
    st.lists(st.floats(0.0, 200.0), max_size=60),
    st.sampled_from(Phase),
    st.booleans(),
)
def test_what_was_cut_short_never_shortens_a_timeout(
    good: list[float], cut: list[float], phase: Phase, timed_out: bool
) -> None:
    timeouts, now = taught(*((KEY, phase, each, 1) for each in good)), 0.0
    for seconds in cut:
        now += 1.0
        before = timeouts.allowed(KEY, now).of(phase)
        timeouts.learn_at_least(KEY, phase, seconds, now, timed_out=timed_out)
        now += 1.0
        after = timeouts.allowed(KEY, now).of(phase)
        # A step of the sketch is 10 %: the same quantile may be read from the next bucket.
        assert after >= before * 0.9 or len(good) < CONFIG.min_samples


def test_clients_who_leave_early_do_not_take_the_time_of_those_who_stay() -> None:
    timeouts = Timeouts(CONFIG)
    for _ in range(1000):
        timeouts.learn_at_least(KEY, Phase.FIRST_BYTE, 0.5, 0.0, timed_out=False)
    assert timeouts.allowed(KEY, 1.0) == DEFAULT
    for _ in range(1000):
        timeouts.learn_at_least(KEY, Phase.FIRST_BYTE, 40.0, 0.0, timed_out=False)
    assert timeouts.allowed(KEY, 2.0).first_byte_s == 100.0


def test_while_many_time_out_nothing_is_learned_and_afterwards_it_is_again() -> None:
    timeouts = taught((KEY, Phase.GAP, 1.0, 100))
    for _ in range(11):
        timeouts.learn_at_least(KEY, Phase.GAP, 3.0, 0.0, timed_out=True)
    for _ in range(1000):
        timeouts.learn_at_least(KEY, Phase.GAP, 90.0, 0.0, timed_out=True)
    assert timeouts.allowed(KEY, 1.0).gap_s < 10.0
    timeouts.learn(KEY, Phase.GAP, 30.0, 1.0)
    assert timeouts.allowed(KEY, 2.0).gap_s < 10.0
    for _ in range(2000):
        timeouts.learn(KEY, Phase.GAP, 30.0, 2.0)
    assert timeouts.allowed(KEY, 3.0).gap_s == pytest.approx(90.0, rel=0.05)


def test_few_timeouts_do_not_freeze_learning() -> None:
    timeouts = taught((KEY, Phase.GAP, 1.0, 100))
    for _ in range(11):
        timeouts.learn_at_least(KEY, Phase.GAP, 3.0, 0.0, timed_out=True)
    for _ in range(500):
        timeouts.learn(KEY, Phase.GAP, 20.0, 1.0)
    assert timeouts.allowed(KEY, 2.0).gap_s == pytest.approx(60.0, rel=0.05)


def test_switched_off_the_defaults_hold_for_ever_and_a_reload_acts_at_once() -> None:
    timeouts = taught((KEY, Phase.TOTAL, 2.0, 100), config=replace(CONFIG, enabled=False))
    assert timeouts.allowed(KEY, 0.0) == DEFAULT
    timeouts.reconfigure(CONFIG)
    assert timeouts.allowed(KEY, 0.0).total_s == pytest.approx(6.0, rel=0.05)


def test_the_keys_are_bounded_and_the_one_unused_for_longest_goes() -> None:
    timeouts = taught((KEY, Phase.TOTAL, 2.0, 30))
    for bucket in range(MOST_KEYS - 1):
        timeouts.learn(("b", "x", bucket), Phase.TOTAL, 2.0, 0.0)
    assert timeouts.allowed(KEY, 0.0) != DEFAULT
    for bucket in range(MOST_KEYS - 1):
        timeouts.learn(("c", "x", bucket), Phase.TOTAL, 2.0, 0.0)
    assert timeouts.allowed(KEY, 2.0) != DEFAULT
    timeouts.learn(("d", "x", 0), Phase.TOTAL, 2.0, 0.0)
    timeouts.learn(("d", "x", 1), Phase.TOTAL, 2.0, 0.0)
    for bucket in range(MOST_KEYS):
        timeouts.learn(("e", "x", bucket), Phase.TOTAL, 2.0, 0.0)
    assert timeouts.allowed(KEY, 4.0) == DEFAULT


def test_what_was_worked_out_is_bounded_too() -> None:
    timeouts = Timeouts(CONFIG)
    for bucket in range(3 * MOST_KEYS):
        timeouts.allowed(("a", "x", bucket), 0.0)
    assert len(timeouts._allowed) <= MOST_KEYS


@pytest.mark.parametrize(("tokens", "bucket"), [(0, 0), (255, 0), (256, 1), (1023, 1), (1024, 2), (4095, 2), (4096, 3)])
def test_length_buckets_are_powers_of_four(tokens: int, bucket: int) -> None:
    assert timing_key("a", "long", tokens) == ("a", "long", bucket)


@pytest.mark.parametrize(
    "wrong", [{"multiplier": 1.0}, {"min_samples": 0}, {"freeze_share": 0.0}, {"freeze_share": 1.1}]
)
def test_impossible_parameters_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="timeouts need"):
        replace(CONFIG, **wrong)  # type: ignore[arg-type]  # one field, of its own type


@pytest.mark.parametrize("bounds", [(0.0, 2.0, 3.0), (2.0, 3.0, 1.0), (1.0, 2.0, 3.0)])
def test_a_phases_bounds_stand_in_order(bounds: tuple[float, float, float]) -> None:
    floor_s, ceiling_s, default_s = bounds
    with pytest.raises(ValueError, match="a timeout needs"):
        PhaseConfig(floor_s=floor_s, ceiling_s=ceiling_s, default_s=default_s)
