"""A client that comes back after it was sent away keeps its first place."""

from __future__ import annotations

import pytest

from tests.policy.machine import Events, replica_config
from tidegate.policy.decisions import Admit, Refuse, Wait
from tidegate.policy.outcomes import Outcome
from tidegate.policy.path import Path
from tidegate.policy.path_config import PathConfig
from tidegate.policy.queue import QueueConfig
from tidegate.policy.repeats import KEEP_S, MOST_KEYS, Repeats

ONE = PathConfig(replicas=(replica_config("a1", sequences=1),), queue=QueueConfig(max_requests=3))


def test_a_first_arrival_is_remembered_for_two_minutes_and_given_once() -> None:
    repeats = Repeats()
    repeats.went_empty("t", "k", 5.0)
    assert repeats.first_arrival("u", "k", 6.0) is None
    assert repeats.first_arrival("t", "k", 6.0) == 5.0
    assert repeats.first_arrival("t", "k", 6.0) is None
    repeats.went_empty("t", "k", 5.0)
    assert repeats.first_arrival("t", "k", 5.0 + KEEP_S) == 5.0
    repeats.went_empty("t", "k", 5.0)
    assert repeats.first_arrival("t", "k", 5.1 + KEEP_S) is None


def test_the_keys_are_bounded_and_the_oldest_goes() -> None:
    repeats = Repeats()
    for number in range(MOST_KEYS + 1):
        repeats.went_empty("t", f"k{number}", 0.0)
    repeats.went_empty("t", f"k{MOST_KEYS}", 1.0)
    assert len(repeats) == MOST_KEYS
    assert repeats.first_arrival("t", "k0", 1.0) is None
    assert repeats.first_arrival("t", f"k{MOST_KEYS}", 1.0) == 1.0


def test_a_repeat_goes_before_those_who_came_after_its_first_visit() -> None:
    events = Events(Path(ONE, 0.0))
    events.offer(max_tokens=10)
    for _ in range(3):
        events.offer(max_tokens=10)
    assert isinstance(events.offer(max_tokens=10, key="early", first_byte_by=7.0), Refuse)
    events.pass_time(1.0)
    events.cancel(0)
    late = events.offer(max_tokens=10, key="late", first_byte_by=8.0)
    assert isinstance(late, Wait)
    events.cancel(0)
    events.pass_time(1.0)
    assert isinstance(events.offer(max_tokens=10, key="early", first_byte_by=9.0), Wait)
    events.settle(0, Outcome.OK)
    assert events.live[0][0].key == "early"
    record = events.path.find(events.live[0][0].id)
    assert (record.repeat, record.first_arrived_at) == (True, 0.0)


def test_one_who_is_sent_away_again_and_again_still_counts_from_its_first_visit() -> None:
    events = Events(Path(ONE, 0.0), now=1.0)
    for _ in range(4):
        events.offer(max_tokens=10)
    for _ in range(3):
        assert isinstance(events.offer(max_tokens=10, key="k"), Refuse)
        events.pass_time(2.0)
    events.cancel(0)
    assert isinstance(events.offer(max_tokens=10, key="k"), Wait)
    record = events.path.find(events.next_id)
    assert (record.repeat, record.first_arrived_at) == (True, 1.0)


@pytest.mark.parametrize(
    ("outcome", "streams", "is_kept"),
    [
        (Outcome.ENGINE_ERROR, False, True),
        (Outcome.CLIENT_LEFT, False, True),
        (Outcome.CLIENT_FAULT, False, False),
        (Outcome.OK, False, False),
        (Outcome.CUT, True, False),
        (Outcome.CLIENT_LEFT, True, False),
    ],
)
def test_only_one_who_got_nothing_and_may_come_back_keeps_its_place(
    outcome: Outcome, streams: bool, is_kept: bool
) -> None:
    events = Events(Path(ONE, 0.0))
    assert isinstance(events.offer(max_tokens=10, key="k"), Admit)
    if streams:
        events.pass_time(0.5)
        events.first_token(0)
    events.pass_time(0.5)
    events.settle(0, outcome, retry=False)
    events.offer(max_tokens=10, key="k")
    assert events.path.find(2).repeat is is_kept


def test_a_refusal_that_coming_back_cannot_mend_keeps_no_place_and_neither_does_a_stored_answer() -> None:
    events = Events(Path(ONE, 0.0))
    events.offer(prompt_tokens=9000, key="k")
    assert len(events.path.repeats) == 0
    events.path.remember(b"c", b"body", 0.0)
    for _ in range(4):
        events.offer(max_tokens=10)
    events.offer(max_tokens=10, key="k", cache_key=b"c")
    assert len(events.path.repeats) == 0
