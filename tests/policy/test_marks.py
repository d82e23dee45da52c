"""Negative marks: each has an end, and timeouts make one only within their window."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from tidegate.policy.marks import (
    MOST_SHOWN,
    OVER_LENGTH,
    Mark,
    MarkKind,
    Marks,
    MarksConfig,
    OverLengthConfig,
    TriggerMode,
    key_of,
)
from tidegate.policy.request import Request
from tidegate.policy.shown_keys import ShowSource, digest
from tidegate.policy.strikes import MOST_KEYS

CONFIG = MarksConfig()
SESSION = MarkKind.SESSION


def mark(key: str = "k", until: float = 10.0, kind: MarkKind = SESSION) -> Mark:
    return Mark(kind, key, "high_risk", until, "5 timeouts within 60 s")


def test_a_mark_holds_until_its_end_and_is_then_gone() -> None:
    marks = Marks(CONFIG)
    marks.add(mark(), 0.0)
    assert marks.find(SESSION, "k", 9.99) == mark()
    assert marks.find(SESSION, "k", 10.0) is None
    assert len(marks) == 0


def test_a_mark_is_on_one_kind_of_key_and_no_key_is_never_marked() -> None:
    marks = Marks(CONFIG)
    marks.add(mark(), 0.0)
    assert marks.find(MarkKind.SOURCE, "k", 0.0) is None
    assert marks.find(SESSION, "other", 0.0) is None
    assert marks.find(SESSION, None, 0.0) is None


def test_a_later_mark_on_the_same_key_takes_its_place() -> None:
    marks = Marks(CONFIG)
    marks.add(mark(until=10.0), 0.0)
    marks.add(mark(until=20.0), 0.0)
    assert len(marks) == 1
    assert marks.find(SESSION, "k", 15.0) is not None


def test_a_mark_can_be_taken_away() -> None:
    marks = Marks(CONFIG)
    marks.add(mark(), 0.0)
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
        marks.add(mark(f"k{number}"), 0.0)
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
    marks.add(mark("short", 5.0), 0.0)
    marks.add(mark("long", 15.0), 0.0)
    assert [each.key for each in marks.live(10.0)] == ["long"]
    assert len(marks) == 1


def test_marks_move_to_another_clock_by_the_time_that_remains() -> None:
    marks, other = Marks(CONFIG), Marks(CONFIG)
    marks.add(mark("k", 1010.0, MarkKind.SOURCE), 1000.0)
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


@pytest.mark.parametrize("scopes", [(MarkKind.REPLICA,), (MarkKind.USER, MarkKind.USER)])
def test_scopes_name_kinds_of_a_request_once(scopes: tuple[MarkKind, ...]) -> None:
    with pytest.raises(ValueError, match=r"marks.scopes names"):
        replace(CONFIG, scopes=scopes)
    with pytest.raises(ValueError, match=r"marks.over_length.scopes names"):
        OverLengthConfig(scopes=scopes)


@pytest.mark.parametrize("wrong", [{"count": 0}, {"window_s": 0.0}, {"block_s": 0.0}])
def test_impossible_over_length_parameters_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=r"marks.over_length needs"):
        replace(OverLengthConfig(), **wrong)  # type: ignore[arg-type]  # one field, of its own type


def asked(session: str | None = "s", user: str | None = "u", source: str | None = "10.0.0.1") -> Request:
    return Request(1, "m", 0.0, 0, session=session, user=user, source=source, tenant="t")


def test_timeouts_count_against_the_session_and_the_user_and_against_others_only_where_that_is_asked_for() -> None:
    marks = Marks(CONFIG)
    for _ in range(5):
        marks.note_timeout(asked(), 0.0)
    assert [(each.kind, each.key) for each in marks.live(0.0)] == [(SESSION, "s"), (MarkKind.USER, "u")]
    everything = Marks(replace(CONFIG, scopes=(MarkKind.SOURCE, MarkKind.MODEL, MarkKind.TENANT)))
    for _ in range(5):
        everything.note_timeout(asked(), 0.0)
    assert {(each.kind.value, each.key) for each in everything.live(0.0)} == {
        ("source", "10.0.0.1"),
        ("model", "m"),
        ("tenant", "t"),
    }


def test_who_names_neither_session_nor_user_marks_nobody() -> None:
    marks = Marks(CONFIG)
    for _ in range(50):
        marks.note_timeout(asked(session=None, user=None), 0.0)
    assert len(marks) == 0
    assert key_of(MarkKind.REPLICA, asked()) is None


def test_in_windowed_mode_a_good_answer_changes_nothing_and_in_consecutive_mode_it_breaks_the_row() -> None:
    for mode, marked in ((TriggerMode.WINDOWED, True), (TriggerMode.CONSECUTIVE, False)):
        marks = Marks(replace(CONFIG, trigger_mode=mode))
        for _ in range(4):
            marks.note_timeout(asked(), 0.0)
        marks.note_success(asked())
        marks.note_timeout(asked(), 0.0)
        assert (marks.find(SESSION, "s", 0.0) is not None) is marked
        for _ in range(4):
            marks.note_timeout(asked(user=None), 0.0)
        found = marks.find(SESSION, "s", 0.0)
        assert found is not None
        assert ("in a row" in found.evidence) is (mode is TriggerMode.CONSECUTIVE)


def test_a_source_of_nothing_but_prompts_that_never_fit_is_blocked_for_a_while() -> None:
    marks = Marks(CONFIG)
    for _ in range(20):
        assert marks.on(asked(), 0.0) is None
        marks.note_over_length(asked(), 0.0)
    found = marks.on(asked(), 0.0)
    assert found is not None
    assert (found.kind, found.reason, found.until) == (MarkKind.SOURCE, OVER_LENGTH, 60.0)
    for _ in range(50):
        marks.note_over_length(asked(), 59.0)
    assert marks.on(asked(), 60.0) is None


def test_a_good_answer_in_between_shows_that_a_source_is_more_than_that() -> None:
    marks = Marks(CONFIG)
    for _ in range(10):
        for _ in range(19):
            marks.note_over_length(asked(source="10.0.0.1"), 0.0)
        marks.note_success(asked())
    assert len(marks) == 0


def test_over_length_counts_against_the_configured_keys_and_not_at_all_when_it_is_off() -> None:
    marks = Marks(replace(CONFIG, over_length=OverLengthConfig(scopes=(SESSION,), count=1)))
    marks.note_over_length(asked(session=None), 0.0)
    assert len(marks) == 0
    marks.note_over_length(asked(), 0.0)
    assert marks.find(SESSION, "s", 0.0) is not None
    for off in (replace(CONFIG, enabled=False), replace(CONFIG, over_length=OverLengthConfig(enabled=False, count=1))):
        marks = Marks(off)
        marks.note_over_length(asked(), 0.0)
        assert (len(marks), marks.is_counting) == (0, False)


def test_good_answers_matter_only_while_something_counts() -> None:
    marks = Marks(CONFIG)
    counting = [marks.is_counting]
    marks.note_timeout(asked(), 0.0)
    for now in (0.0, 59.0, 61.0):
        marks.expire(now)
        counting.append(marks.is_counting)
    assert counting == [False, True, True, False]


def test_a_mark_is_told_when_it_is_set_and_when_it_ends_as_the_configuration_shows_it() -> None:
    marks = Marks(replace(CONFIG, show_source=ShowSource.PREFIX, mask=True))
    marks.add(Mark(MarkKind.SOURCE, "10.1.2.3", "scraper", 30.0, "asked for"), 0.0)
    marks.add(Mark(MarkKind.USER, "alice", "high_risk", 20.0, "5 timeouts"), 0.0)
    marks.add(Mark(MarkKind.TENANT, "acme", "unpaid", 90.0, "asked for"), 0.0)
    assert [(each.kind, each.level, each.text) for each in marks.take_notices(0.0)] == [
        ("mark_set", "warning", "mark set: source 10.1.2.0/24: scraper for 30 s: asked for"),
        ("mark_set", "warning", f"mark set: user {digest('alice')}: high_risk for 20 s: 5 timeouts"),
        ("mark_set", "warning", "mark set: tenant acme: unpaid for 90 s: asked for"),
    ]
    marks.remove(MarkKind.TENANT, "acme")
    assert [(each.kind, each.text) for each in marks.take_notices(30.0)] == [
        ("mark_ended", "mark ended: tenant acme: unpaid: lifted"),
        ("mark_ended", "mark ended: source 10.1.2.0/24: scraper: over"),
        ("mark_ended", f"mark ended: user {digest('alice')}: high_risk: over"),
    ]
    view = marks.view(30.0)
    assert view["marks_set"] == {"source": {"operator": 1}, "user": {"high_risk": 1}, "tenant": {"operator": 1}}
    assert view["marks_ended"] == view["marks_set"]


def test_a_view_lists_the_latest_marks_and_counts_all() -> None:
    marks = Marks(CONFIG)
    for number in range(MOST_SHOWN + 5):
        marks.add(mark(f"k{number}", 50.0), 0.0)
    view = marks.view(10.0)
    assert view["marks"] == MOST_SHOWN + 5
    shown = view["marks_shown"]
    assert isinstance(shown, list)
    assert len(shown) == MOST_SHOWN
    assert shown[0] == {"kind": "session", "key": f"k{MOST_SHOWN + 4}", "reason": "high_risk", "remaining_s": 40.0}


def test_an_operators_marks_are_the_last_to_be_displaced() -> None:
    marks = Marks(CONFIG)
    marks.add(Mark(SESSION, "theirs", "blocked", 10.0, "asked for"), 0.0)
    for number in range(MOST_KEYS):
        marks.add(mark(f"k{number}"), 0.0)
    assert marks.find(SESSION, "theirs", 0.0) is not None
    assert marks.find(SESSION, "k0", 0.0) is None
    full = Marks(CONFIG)
    for number in range(MOST_KEYS + 1):
        full.add(Mark(SESSION, f"k{number}", "blocked", 10.0, "asked for"), 0.0)
    assert (len(full), full.find(SESSION, "k0", 0.0)) == (MOST_KEYS, None)


def test_marks_on_replicas_are_no_matter_of_arriving_requests() -> None:
    marks = Marks(CONFIG)
    marks.add(mark(kind=MarkKind.REPLICA), 0.0)
    assert (len(marks), marks.on_clients) == (1, 0)
    marks.add(mark(kind=SESSION), 0.0)
    assert marks.on_clients == 1


KINDS = st.sampled_from([*MarkKind])


class MarksMachine(RuleBasedStateMachine):
    """Safety: the books agree, the table is bounded. Liveness: left alone, every mark ends and is told."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.marks = Marks(replace(CONFIG, scopes=(SESSION, MarkKind.SOURCE), trigger_mode=TriggerMode.CONSECUTIVE))
        self.told = {"mark_set": 0, "mark_ended": 0}
        self.renewed = 0

    @rule(seconds=st.floats(0, 40))
    def pass_time(self, seconds: float) -> None:
        self.now += seconds

    @rule(kind=KINDS, key=st.sampled_from("abc"), ttl_s=st.floats(0.1, 100.0))
    def set_one(self, kind: MarkKind, key: str, ttl_s: float) -> None:
        self.renewed += (kind, key) in self.held()
        self.marks.add(Mark(kind, key, "blocked", self.now + ttl_s, "asked for"), self.now)

    @rule(kind=KINDS, key=st.sampled_from("abc"))
    def lift(self, kind: MarkKind, key: str) -> None:
        assert self.marks.remove(kind, key) is ((kind, key) in self.held_before)
        assert self.marks.find(kind, key, self.now) is None

    @rule(session=st.sampled_from("abc"), source=st.sampled_from("abc"), what=st.sampled_from(["late", "long", "good"]))
    def request(self, session: str, source: str, what: str) -> None:
        asked_for, before = asked(session=session, source=source), self.held()
        sets = sum(sum(each.values()) for each in self.counted("marks_set"))
        if what == "late":
            self.marks.note_timeout(asked_for, self.now)
        elif what == "long":
            self.marks.note_over_length(asked_for, self.now)
        else:
            self.marks.note_success(asked_for)
        made = sum(sum(each.values()) for each in self.counted("marks_set")) - sets
        self.renewed += made - len(self.held() - before)

    def counted(self, name: str) -> list[dict[str, int]]:
        found = self.marks.view(self.now)[name]
        assert isinstance(found, dict)
        return [*found.values()]

    def held(self) -> set[tuple[MarkKind, str]]:
        return {(each.kind, each.key) for each in self.marks.live(self.now)}

    @invariant()
    def books_agree(self) -> None:
        for notice in self.marks.take_notices(self.now):
            self.told[notice.kind] += 1
        live = self.marks.live(self.now)
        self.held_before = self.held()
        assert all(each.until > self.now for each in live)
        assert self.marks.on_clients == sum(each.kind is not MarkKind.REPLICA for each in live)
        assert self.told["mark_set"] - self.renewed - self.told["mark_ended"] == len(live)

    def teardown(self) -> None:
        self.now += 200.0
        assert self.marks.live(self.now) == []
        assert (self.marks.on_clients, self.marks.is_counting) == (0, False)


TestMarksMachine = MarksMachine.TestCase
TestMarksMachine.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
