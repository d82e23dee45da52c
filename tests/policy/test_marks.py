"""Negative marks: each has an end, and timeouts make one only within their window."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.policy.marks import MOST_KEYS, Mark, MarkKind, Marks, MarksConfig

CONFIG = MarksConfig()
SESSION = MarkKind.SESSION


def mark(key: str = "k", until: float = 10.0, kind: MarkKind = SESSION) -> Mark:
    return Mark(kind, key, "high_risk", until, "5 timeouts within 60 s")


def test_a_mark_holds_until_its_end_and_is_then_gone() -> None:
    marks = Marks(CONFIG)
    marks.add(mark())
    assert marks.find(SESSION, "k", 9.99) == mark()
    assert marks.find(SESSION, "k", 10.0) is None
    assert len(marks) == 0


def test_a_mark_is_on_one_kind_of_key_and_no_key_is_never_marked() -> None:
    marks = Marks(CONFIG)
    marks.add(mark())
    assert marks.find(MarkKind.SOURCE, "k", 0.0) is None
    assert marks.find(SESSION, "other", 0.0) is None
    assert marks.find(SESSION, None, 0.0) is None


def test_a_later_mark_on_the_same_key_takes_its_place() -> None:
    marks = Marks(CONFIG)
    marks.add(mark(until=10.0))
    marks.add(mark(until=20.0))
    assert len(marks) == 1
    assert marks.find(SESSION, "k", 15.0) is not None


def test_a_mark_can_be_taken_away() -> None:
    marks = Marks(CONFIG)
    marks.add(mark())
    marks.remove(SESSION, "k")
    marks.remove(SESSION, "never there")
    assert marks.find(SESSION, "k", 0.0) is None


@given(st.lists(st.floats(0.0, 40.0), min_size=1, max_size=60))
def test_five_timeouts_within_a_minute_mark_a_key_and_fewer_do_not(gaps_s: list[float]) -> None:
    marks, now, strikes = Marks(CONFIG), 0.0, list[float]()
    for gap_s in gaps_s:
        now += gap_s
        strikes = [each for each in strikes if each > now - 60.0] + [now]
        made = marks.strike(SESSION, "k", now)
        assert (made is not None) == (len(strikes) == 5)
        if made is not None:
            assert (made.until, made.evidence) == (now + 30.0, "5 timeouts within 60 s")
            assert marks.find(SESSION, "k", now) == made
            strikes = []


def test_timeouts_that_are_spread_over_more_than_the_window_mark_nobody() -> None:
    marks = Marks(CONFIG)
    assert [marks.strike(SESSION, "k", 15.1 * number) for number in range(20)] == [None] * 20
    assert [marks.strike(SESSION, "j", 14.9 * number) is not None for number in range(5)] == [False] * 4 + [True]


def test_keys_are_counted_apart() -> None:
    marks = Marks(CONFIG)
    for number in range(40):
        assert marks.strike(SESSION, f"k{number % 10}", 0.0) is None
    assert marks.strike(SESSION, "k0", 0.0) is not None


def test_switched_off_timeouts_make_no_mark() -> None:
    marks = Marks(replace(CONFIG, enabled=False))
    assert [marks.strike(SESSION, "k", 0.0) for _ in range(100)] == [None] * 100
    assert len(marks) == 0


def test_the_table_is_bounded_and_the_oldest_goes() -> None:
    marks = Marks(CONFIG)
    for number in range(MOST_KEYS + 10):
        marks.add(mark(f"k{number}"))
    assert len(marks) == MOST_KEYS
    assert marks.find(SESSION, "k9", 0.0) is None
    assert marks.find(SESSION, "k10", 0.0) is not None


def test_strikes_are_bounded_and_the_key_that_is_quiet_for_longest_goes() -> None:
    marks = Marks(CONFIG)
    for _ in range(4):
        marks.strike(SESSION, "first", 0.0)
    for number in range(MOST_KEYS):
        marks.strike(SESSION, f"k{number}", 0.0)
    assert marks.strike(SESSION, "first", 0.0) is None


def test_the_live_ones_are_listed_and_the_rest_swept() -> None:
    marks = Marks(CONFIG)
    marks.add(mark("short", 5.0))
    marks.add(mark("long", 15.0))
    assert [each.key for each in marks.live(10.0)] == ["long"]
    assert len(marks) == 1


def test_marks_move_to_another_clock_by_the_time_that_remains() -> None:
    marks, other = Marks(CONFIG), Marks(CONFIG)
    marks.add(mark("k", 1010.0, MarkKind.SOURCE))
    other.restore(marks.dump(1000.0), 5.0)
    assert other.find(MarkKind.SOURCE, "k", 14.9) == mark("k", 15.0, MarkKind.SOURCE)
    assert other.find(MarkKind.SOURCE, "k", 15.0) is None


@pytest.mark.parametrize("remaining_s", [0.0, -1.0, float("nan"), "10", None])
def test_a_kept_mark_without_time_left_is_not_restored(remaining_s: object) -> None:
    marks = Marks(CONFIG)
    row = marks.dump(0.0)
    row.append({"kind": "session", "key": "k", "reason": "r", "remaining_s": remaining_s, "evidence": "e"})
    marks.restore(row, 0.0)
    assert len(marks) == 0


@pytest.mark.parametrize("wrong", [{"trigger_count": 0}, {"window_s": 0.0}, {"high_risk_s": 0.0}])
def test_impossible_parameters_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="marks need"):
        replace(CONFIG, **wrong)  # type: ignore[arg-type]  # one field, of its own type
