"""An aborted attempt keeps its slots until the engine shows that it has stopped, or its grace is over."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.policy.machine import Events, replica_config
from tidegate.policy.decisions import Admit, Wait
from tidegate.policy.outcomes import Outcome
from tidegate.policy.path import Path
from tidegate.policy.path_config import PathConfig
from tidegate.policy.permit import PermitState, Progress

A1 = replica_config("a1")


def running(count: int, *, sequences: int = 1, confirms_aborts: bool = True) -> Events:
    """So many attempts that have their first token, on one replica."""
    events = Events(Path(PathConfig(replicas=(replace(A1, confirms_aborts=confirms_aborts),)), 0.0))
    for _ in range(count):
        assert isinstance(events.offer(prompt_tokens=10, max_tokens=10, sequences=sequences), Admit)
        events.first_token(0)
    events.pass_time(1.0)
    return events


def held(events: Events) -> int:
    return events.path.upstreams["a"].replicas[0].slots.held


def unconfirmed(events: Events) -> object:
    return events.path.view(events.now)["abort_unconfirmed"]


def test_a_reading_that_has_no_room_for_the_aborted_attempt_frees_it() -> None:
    events = running(3)
    events.settle(0, Outcome.CLIENT_LEFT, still_running=True)
    assert held(events) == 3
    events.pass_time(0.1)
    events.observe("a1", running=3)
    assert held(events) == 3
    events.pass_time(0.1)
    events.observe("a1", running=2)
    assert held(events) == 2
    assert unconfirmed(events) == 0


def test_what_still_waits_inside_the_engine_counts_as_running() -> None:
    events = running(2)
    events.settle(0, Outcome.CLIENT_LEFT, still_running=True)
    events.pass_time(0.1)
    events.observe("a1", running=1, waiting=1)
    assert held(events) == 2


def test_a_reading_from_before_the_abort_proves_nothing() -> None:
    events = running(2)
    before = events.now
    events.pass_time(0.1)
    events.settle(0, Outcome.CLIENT_LEFT, still_running=True)
    events.now, late = before, events.now
    events.observe("a1", running=1)
    events.now = late
    assert held(events) == 2


def test_an_attempt_that_began_after_the_reading_does_not_hide_the_aborted_one() -> None:
    events = running(1)
    events.settle(0, Outcome.CLIENT_LEFT, still_running=True)
    events.pass_time(0.1)
    read_at = events.now
    events.pass_time(0.1)
    events.offer(prompt_tokens=10, max_tokens=10)
    events.now, late = read_at, events.now
    events.observe("a1", running=1)
    events.now = late
    assert len(events.aborted) == 1
    assert events.aborted[0].state is PermitState.ABORTING


def test_an_abort_of_three_sequences_ends_with_the_last_of_them() -> None:
    events = running(1, sequences=3)
    events.settle(0, Outcome.CLIENT_LEFT, still_running=True)
    for still_running in (3, 2, 1):
        events.pass_time(0.1)
        events.observe("a1", running=still_running)
        assert held(events) == 3
    events.pass_time(0.1)
    events.observe("a1", running=0)
    assert held(events) == 0


def test_one_reading_frees_as_many_aborts_as_it_has_no_room_for_oldest_first() -> None:
    events = running(4)
    for _ in range(3):
        events.settle(0, Outcome.CLIENT_LEFT, still_running=True)
    events.pass_time(0.1)
    events.observe("a1", running=2)
    assert [each.state for each in events.aborted] == [PermitState.SETTLED, PermitState.SETTLED, PermitState.ABORTING]


def test_load_that_is_not_ours_keeps_an_abort_unconfirmed_until_its_grace_is_over() -> None:
    events = running(1)
    events.settle(0, Outcome.CLIENT_LEFT, still_running=True)
    for _ in range(4):
        events.pass_time(0.4)
        events.observe("a1", running=5)
    assert held(events) == 1
    events.pass_time(0.41)
    assert held(events) == 0
    assert unconfirmed(events) == 1
    assert events.path.view(events.now)["permits"] == 0


def test_an_engine_that_never_confirms_is_believed_after_the_grace() -> None:
    events = running(1, confirms_aborts=False)
    events.settle(0, Outcome.CLIENT_LEFT, still_running=True)
    events.pass_time(0.1)
    events.observe("a1", running=0)
    assert held(events) == 1
    assert events.path.next_wakeup() == pytest.approx(3.0)
    events.pass_time(2.0)
    assert held(events) == 0
    assert unconfirmed(events) == 1


def test_an_engine_that_is_not_ready_runs_nothing_any_more() -> None:
    events = running(2, confirms_aborts=False)
    events.settle(0, Outcome.CLIENT_LEFT, still_running=True)
    events.observe("a1", ready=False)
    assert held(events) == 1


def test_the_drivers_own_confirmation_frees_it_and_may_come_twice_and_after_close() -> None:
    events = running(1)
    events.settle(0, Outcome.CLIENT_LEFT, still_running=True)
    permit = events.aborted[0]
    events.confirm(0)
    events.path.progress(permit, Progress.ABORTED, events.now)
    assert held(events) == 0
    events.pass_time(5.0)
    assert unconfirmed(events) == 0


def test_only_an_aborted_attempt_can_be_confirmed() -> None:
    events = running(1)
    with pytest.raises(ValueError, match="used, not aborting"):
        events.path.progress(events.live[0][1], Progress.ABORTED, events.now)


def test_a_freed_abort_lets_the_next_ticket_go() -> None:
    events = Events(Path(PathConfig(replicas=(replica_config("a1", sequences=1),)), 0.0))
    events.offer(prompt_tokens=10, max_tokens=10)
    assert isinstance(events.offer(prompt_tokens=10, max_tokens=10), Wait)
    events.settle(0, Outcome.CLIENT_LEFT, still_running=True)
    assert events.waiting
    events.pass_time(2.0)
    assert not events.waiting
    assert len(events.live) == 1


def test_an_attempt_aborted_before_its_first_token_gives_its_prefill_back_at_once_and_its_slots_later() -> None:
    events = Events(Path(PathConfig(replicas=(A1,)), 0.0))
    events.offer(prompt_tokens=500, max_tokens=10)
    replica = events.path.upstreams["a"].replicas[0]
    assert (replica.pending_tokens, replica.slots.reserved) == (500, 2)
    events.settle(0, Outcome.CLIENT_LEFT, still_running=True)
    assert (replica.pending_tokens, replica.slots.reserved, replica.slots.in_use) == (0, 0, 2)
    events.confirm(0)
    assert (replica.slots.in_use, replica.in_flight) == (0, 0)


def test_a_permit_is_settled_once() -> None:
    for still_running in (False, True):
        events = running(1)
        permit = events.live[0][1]
        events.path.settle(permit, Outcome.OK, events.now, still_running=still_running)
        with pytest.raises(ValueError, match="settled twice"):
            events.path.settle(permit, Outcome.OK, events.now)


def test_a_permit_that_outlives_its_total_time_by_a_minute_shows_as_a_leak() -> None:
    events = running(1)
    permit = events.live[0][1]
    assert events.path.view(permit.total_by + 59.0)["permit_leaks"] == 0
    assert events.path.view(permit.total_by + 61.0)["permit_leaks"] == 1
