"""Requests under a key: which call repeats which, what is kept, and for how long."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from tidegate.policy.idempotency import IdempotencyConfig, KeyedAnswers, TakenError

CONFIG = IdempotencyConfig(max_age_s=10.0, max_bytes=100, max_answer_bytes=40, max_answers=4)
A, B = ("a", b"k"), ("b", b"k")


def kept(config: IdempotencyConfig = CONFIG) -> KeyedAnswers[str]:
    answers: KeyedAnswers[str] = KeyedAnswers(config)
    answers.begin(A, b"d", "first")
    assert answers.end(A, 200, 10, 0.0, is_complete=True)
    return answers


def test_a_repeat_finds_the_request_while_it_runs_and_when_it_is_over() -> None:
    answers: KeyedAnswers[str] = KeyedAnswers(CONFIG)
    assert answers.find(A, b"d", 0.0) is None
    answers.begin(A, b"d", "first")
    running = answers.find(A, b"d", 0.0)
    assert running is not None
    assert (running.answer, running.is_over) == ("first", False)
    assert answers.end(A, 200, 10, 1.0, is_complete=True)
    over = answers.find(A, b"d", 10.9)
    assert over is running
    assert over.is_over
    assert answers.view() == {"running": 0, "kept": 1, "kept_bytes": 10}


def test_an_answer_is_forgotten_when_it_is_too_old() -> None:
    answers = kept()
    assert answers.find(A, b"d", 9.9) is not None
    assert answers.find(A, b"other", 10.0) is None
    assert answers.view() == {"running": 0, "kept": 0, "kept_bytes": 0}


def test_another_request_under_the_same_key_is_told_so_running_or_over() -> None:
    answers = kept()
    with pytest.raises(TakenError):
        answers.find(A, b"other", 1.0)
    answers.begin(B, b"d", "second")
    with pytest.raises(TakenError):
        answers.find(B, b"other", 1.0)


def test_another_tenant_under_the_same_key_has_nothing_to_do_with_it() -> None:
    assert kept().find(B, b"other", 1.0) is None


@pytest.mark.parametrize(
    ("status", "is_complete", "is_kept"),
    [
        (200, True, True),
        (200, False, False),
        (299, True, True),
        (300, True, False),
        (400, True, True),
        (413, True, True),
        (422, True, True),
        (401, True, False),
        (404, True, False),
        (408, True, False),
        (429, True, False),
        (500, True, False),
        (503, True, False),
    ],
)
def test_only_what_a_repeat_would_get_again_is_kept(status: int, is_complete: bool, is_kept: bool) -> None:
    answers: KeyedAnswers[str] = KeyedAnswers(CONFIG)
    answers.begin(A, b"d", "first")
    assert answers.end(A, status, 10, 0.0, is_complete=is_complete) is is_kept
    assert (answers.find(A, b"d", 1.0) is not None) is is_kept


def test_an_answer_that_is_too_long_is_not_kept() -> None:
    answers: KeyedAnswers[str] = KeyedAnswers(CONFIG)
    answers.begin(A, b"d", "first")
    assert not answers.end(A, 200, 41, 0.0, is_complete=True)
    assert answers.kept == 0


def test_a_request_that_was_given_up_leaves_its_key_free() -> None:
    answers: KeyedAnswers[str] = KeyedAnswers(CONFIG)
    answers.begin(A, b"d", "first")
    answers.forget(A)
    assert answers.find(A, b"other", 0.0) is None


def test_two_requests_cannot_run_under_one_key() -> None:
    answers: KeyedAnswers[str] = KeyedAnswers(CONFIG)
    answers.begin(A, b"d", "first")
    with pytest.raises(ValueError, match="already runs"):
        answers.begin(A, b"d", "second")


def keep(answers: KeyedAnswers[str], tenant: str, key: bytes, size_bytes: int, now: float = 0.0) -> None:
    answers.begin((tenant, key), b"d", "")
    answers.end((tenant, key), 200, size_bytes, now, is_complete=True)


def test_who_holds_most_gives_way_the_oldest_first() -> None:
    answers = kept()
    for key in (b"1", b"2"):
        keep(answers, "flood", key, 40)
    assert answers.kept_bytes == 90
    keep(answers, "flood", b"3", 40)
    assert answers.find(("flood", b"1"), b"d", 1.0) is None
    assert answers.find(("flood", b"2"), b"d", 1.0) is not None
    assert answers.find(A, b"d", 1.0) is not None
    for key in (b"4", b"5", b"6"):
        keep(answers, "flood", key, 1)
    assert answers.kept == 4
    assert answers.find(A, b"d", 1.0) is not None


def test_expiring_and_less_room_drop_the_old_ones() -> None:
    answers = kept()
    keep(answers, "a", b"2", 20, 5.0)
    keep(answers, "b", b"3", 15, 5.0)
    answers.expire(10.0)
    assert answers.view() == {"running": 0, "kept": 2, "kept_bytes": 35}
    answers.reconfigure(IdempotencyConfig(max_bytes=15, max_answer_bytes=15))
    assert answers.view() == {"running": 0, "kept": 1, "kept_bytes": 15}
    answers.expire(15.0)
    assert answers.kept == 0


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_answer_bytes": 0},
        {"max_bytes": 10, "max_answer_bytes": 11},
        {"max_answers": 0},
        {"max_age_s": 0.0},
        {"orphan_s": -1.0},
    ],
)
def test_a_configuration_that_makes_no_sense_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="idempotency needs"):
        IdempotencyConfig(**wrong)  # type: ignore[arg-type] # numbers of either kind


class KeysMachine(RuleBasedStateMachine):
    """Against a model that remembers everything."""

    def __init__(self) -> None:
        super().__init__()
        self.answers: KeyedAnswers[int] = KeyedAnswers(CONFIG)
        self.running: dict[tuple[str, bytes], int] = {}
        self.ended: dict[int, float] = {}
        self.now = 0.0
        self.made = 0

    @rule(tenant=st.sampled_from("ab"), key=st.sampled_from([b"1", b"2", b"3"]), digest=st.sampled_from([b"x", b"y"]))
    def call(self, tenant: str, key: bytes, digest: bytes) -> None:
        name = (tenant, key)
        try:
            entry = self.answers.find(name, digest, self.now)
        except TakenError:
            return
        if entry is None:
            assert name not in self.running
            self.made += 1
            self.answers.begin(name, digest, self.made)
            self.running[name] = self.made
        elif entry.is_over:
            assert self.now - self.ended[entry.answer] < CONFIG.max_age_s
        else:
            assert entry.answer == self.running[name]

    @rule(
        index=st.integers(0, 5),
        status=st.sampled_from([200, 400, 429, 500]),
        size_bytes=st.integers(0, 60),
        is_left=st.booleans(),
    )
    def end(self, index: int, status: int, size_bytes: int, is_left: bool) -> None:
        if not self.running:
            return
        name = sorted(self.running)[index % len(self.running)]
        number = self.running.pop(name)
        if is_left:
            self.answers.forget(name)
        elif self.answers.end(name, status, size_bytes, self.now, is_complete=True):
            self.ended[number] = self.now

    @rule(seconds=st.floats(0.1, 6.0))
    def wait(self, seconds: float) -> None:
        self.now += seconds
        self.answers.expire(self.now)

    @invariant()
    def bounds_hold(self) -> None:
        view = self.answers.view()
        assert view["running"] == len(self.running)
        assert view["kept_bytes"] <= CONFIG.max_bytes
        assert view["kept"] <= CONFIG.max_answers


KeysMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
TestKeys = KeysMachine.TestCase
