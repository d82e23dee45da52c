"""Strikes: counted by key, within a window, and forgotten in good time."""

from __future__ import annotations

from tidegate.policy.strikes import MOST_KEYS, Strikes

KEY = ("session", "k")


def test_the_count_is_told_once_and_then_begins_anew() -> None:
    strikes = Strikes()
    assert [strikes.add(KEY, 3, 60.0, float(at)) for at in range(7)] == [0, 0, 3, 0, 0, 3, 0]


def test_strikes_older_than_the_window_do_not_count() -> None:
    strikes = Strikes()
    assert [strikes.add(KEY, 3, 10.0, at) for at in (0.0, 9.0, 10.0, 11.0)] == [0, 0, 0, 3]


def test_a_success_breaks_the_row_of_its_key_only() -> None:
    strikes = Strikes()
    other = ("session", "other")
    for key in (KEY, other):
        strikes.add(key, 2, 60.0, 0.0)
    strikes.clear(KEY)
    strikes.clear(("session", "never there"))
    assert strikes.add(KEY, 2, 60.0, 1.0) == 0
    assert strikes.add(other, 2, 60.0, 1.0) == 2


def test_keys_that_are_quiet_for_the_window_are_forgotten() -> None:
    strikes = Strikes()
    strikes.add(KEY, 5, 60.0, 0.0)
    strikes.add(("session", "later"), 5, 60.0, 30.0)
    strikes.expire(60.0, 61.0)
    assert len(strikes) == 1
    strikes.expire(60.0, 90.0)
    assert len(strikes) == 0


def test_the_table_is_bounded_and_the_key_that_is_quiet_for_longest_goes() -> None:
    strikes = Strikes()
    strikes.add(KEY, 2, 60.0, 0.0)
    for number in range(MOST_KEYS):
        strikes.add(("session", f"s{number}"), 2, 60.0, 0.0)
    assert len(strikes) == MOST_KEYS
    assert strikes.add(KEY, 2, 60.0, 0.0) == 0
