"""Notices: kept in order, taken once, bounded, and what is dropped is counted."""

from __future__ import annotations

from tidegate.policy.notices import MOST_NOTICES, Notice, Notices


def test_notices_are_taken_once_and_in_order() -> None:
    notices = Notices()
    notices.add("mark_set", "first", "warning")
    notices.add("mark_ended", "second")

    assert len(notices) == 2
    assert notices.take() == [Notice("mark_set", "first", "warning"), Notice("mark_ended", "second")]
    assert notices.take() == []


def test_a_storm_keeps_its_beginning_and_counts_the_rest() -> None:
    notices = Notices()
    for number in range(MOST_NOTICES + 3):
        notices.add("degraded", str(number))

    taken = notices.take()

    assert [each.text for each in (taken[0], taken[-1])] == ["0", str(MOST_NOTICES - 1)]
    assert notices.lost == 3
    notices.add("degraded", "again")
    assert [each.text for each in notices.take()] == ["again"]
