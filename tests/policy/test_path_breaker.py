"""The breaker as requests meet it: closed for the rest, probed by a few, and never on the last replica."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.policy.machine import Events, replica_config
from tidegate.policy.breaker import BreakerConfig, State
from tidegate.policy.decisions import Admit, Wait
from tidegate.policy.outcomes import Outcome
from tidegate.policy.path import Path
from tidegate.policy.path_config import PathConfig
from tidegate.policy.permit import Progress
from tidegate.policy.replica import Replica
from tidegate.policy.slots import SlotsConfig

A1, A2 = replica_config("a1", sequences=2), replica_config("a2", sequences=4)
TWO = PathConfig(replicas=(A1, A2))


def replica(events: Events, name: str) -> Replica:
    return next(each for each in events.path.upstreams["a"].replicas if each.name == name)


def with_a2_open(config: PathConfig = TWO) -> Events:
    events = Events(Path(config, 0.0))
    while replica(events, "a2").breaker.state is not State.OPEN:
        events.offer(max_tokens=10)
        outcome = Outcome.ENGINE_ERROR if events.live[0][1].replica == "a2" else Outcome.OK
        events.settle(0, outcome, retry=False)
    return events


def fill(events: Events, count: int) -> list[str]:
    decisions = [events.offer(max_tokens=10) for _ in range(count)]
    return [each.permit.replica if isinstance(each, Admit) else "waits" for each in decisions]


def test_an_open_replica_gets_nothing_though_the_other_is_full() -> None:
    events = with_a2_open()
    assert fill(events, 4) == ["a1", "a1", "waits", "waits"]


def test_a_waiting_ticket_is_the_first_probe_and_the_wakeup_for_it_is_named() -> None:
    events = with_a2_open()
    fill(events, 6)
    assert events.path.next_wakeup() == 1.0
    events.pass_time(1.0)
    assert [permit.probe for _, permit in events.live if permit.replica == "a2"] == [True]
    assert len(events.waiting) == 3
    events.settle(2, Outcome.OK)
    assert [permit.probe for _, permit in events.live if permit.replica == "a2"] == [True] * 2
    assert len(events.waiting) == 1
    wakeup = events.path.next_wakeup()
    assert wakeup is not None
    assert wakeup > events.now


def test_the_wakeup_does_not_stay_in_the_past_when_nobody_can_use_the_probe() -> None:
    events = with_a2_open()
    events.observe("a2", ready=False)
    fill(events, 3)
    events.pass_time(5.0)
    wakeup = events.path.next_wakeup()
    assert wakeup is not None
    assert wakeup > 5.0
    assert len(events.waiting) == 1


def test_good_probes_close_it_and_all_may_come_again() -> None:
    events = with_a2_open()
    fill(events, 6)
    events.pass_time(5.0)
    for _ in range(3):
        index = next(index for index, (_, permit) in enumerate(events.live) if permit.replica == "a2")
        events.settle(index, Outcome.OK)
    assert replica(events, "a2").breaker.state is State.CLOSED
    assert fill(events, 3) == ["a2"] * 3


def test_a_bad_probe_opens_it_again_for_longer() -> None:
    events = with_a2_open()
    fill(events, 6)
    events.pass_time(5.0)
    index = next(index for index, (_, permit) in enumerate(events.live) if permit.replica == "a2")
    events.settle(index, Outcome.ENGINE_ERROR, retry=False)
    assert replica(events, "a2").breaker.open_until == 7.0
    assert events.path.next_wakeup() == 7.0


def test_probes_that_say_nothing_are_made_again() -> None:
    events = with_a2_open()
    fill(events, 2)
    events.pass_time(5.0)
    for _ in range(10):
        assert fill(events, 1) == ["a2"]
        events.settle(2, Outcome.CLIENT_LEFT)
    assert replica(events, "a2").breaker.state is State.HALF_OPEN


def test_the_last_replica_that_could_serve_is_never_left_alone() -> None:
    for other in ({"ready": False}, None):
        events = Events(Path(TWO, 0.0))
        if other is None:
            events.apply(replace(TWO, replicas=(A2,)))
        else:
            events.observe("a1", **other)
        for _ in range(50):
            assert fill(events, 1) == ["a2"]
            events.settle(0, Outcome.ENGINE_ERROR, retry=False)
        assert replica(events, "a2").breaker.state is State.CLOSED


def test_one_of_two_that_both_fail_stays_in() -> None:
    events = Events(Path(TWO, 0.0))
    for _ in range(200):
        assert fill(events, 1) != ["waits"]
        events.settle(0, Outcome.ENGINE_ERROR, retry=False)
    assert {each.breaker.state for each in events.path.upstreams["a"].replicas} == {State.CLOSED, State.OPEN}


def test_pushbacks_never_open_it() -> None:
    events = Events(Path(TWO, 0.0))
    for _ in range(200):
        assert isinstance(events.offer(max_tokens=10), Admit)
        events.settle(0, Outcome.PUSHBACK, retry=False)
    assert {each.breaker.state for each in events.path.upstreams["a"].replicas} == {State.CLOSED}


def test_a_removed_replicas_breaker_may_open_without_harm() -> None:
    events = Events(Path(TWO, 0.0))
    fill(events, 6)
    events.apply(replace(TWO, replicas=(A1,)))
    for _ in range(6):
        events.settle(0, Outcome.ENGINE_ERROR, retry=False)
    assert replica(events, "a1").breaker.state is State.CLOSED
    events.finish()


def test_a_waiting_ticket_goes_at_once_when_the_breaker_is_switched_off() -> None:
    events = with_a2_open()
    assert fill(events, 3)[-1] == "waits"
    events.apply(replace(TWO, breaker=BreakerConfig(enabled=False)))
    assert not events.waiting


def test_waiting_behind_an_open_breaker_ends_with_patience_if_not_with_a_probe() -> None:
    config = replace(TWO, breaker=BreakerConfig(cooldown_s=50.0, max_cooldown_s=60.0))
    events = with_a2_open(config)
    assert fill(events, 3)[-1] == "waits"
    assert isinstance(events.offer(max_tokens=10, first_byte_by=2.0), Wait)
    events.pass_time(10.0)
    assert not events.waiting


def test_a_replica_that_is_left_alone_serves_again_when_its_stand_in_goes_down() -> None:
    events = with_a2_open()
    events.observe("a1", ready=False)
    assert fill(events, 5) == ["a2"] * 4 + ["waits"]
    assert not any(permit.probe for _, permit in events.live)
    for _ in range(3):
        events.settle(0, Outcome.OK)
    assert replica(events, "a2").breaker.state is State.CLOSED


def test_in_a_panic_the_usable_ones_are_filled_first_and_the_others_get_what_is_too_much_for_them() -> None:
    four = tuple(replica_config(f"a{number}", sequences=1) for number in range(1, 5))
    events = Events(Path(PathConfig(replicas=four), 0.0))
    upstream = events.path.upstreams["a"]
    for each in upstream.replicas[:2]:
        each.marked_until = 50.0
    assert not upstream.is_in_panic(0.0)
    assert sorted(fill(events, 3)) == ["a3", "a4", "waits"]
    upstream.replicas[2].marked_until = 50.0
    assert upstream.is_in_panic(0.0)
    events.settle([permit.replica for _, permit in events.live].index("a4"), Outcome.OK)
    assert [permit.replica for _, permit in events.live] == ["a3", "a4"]
    assert sorted(fill(events, 3)) == ["a1", "a2", "waits"]


def test_nobody_panics_where_everybody_is_usable_or_nobody_is_up() -> None:
    events = Events(Path(TWO, 0.0))
    upstream = events.path.upstreams["a"]
    assert not upstream.is_in_panic(0.0)
    for name in ("a1", "a2"):
        events.observe(name, ready=False)
    assert not upstream.is_in_panic(0.0)
    assert fill(events, 1) == ["waits"]


def test_a_connection_that_nobody_took_sends_the_rest_elsewhere() -> None:
    events = Events(Path(TWO, 0.0))
    while not any(permit.replica == "a2" for _, permit in events.live):
        events.offer(max_tokens=10)
    index = next(index for index, (_, permit) in enumerate(events.live) if permit.replica == "a2")
    events.settle(index, Outcome.CONNECT_FAILED)
    assert replica(events, "a2").breaker.state is State.OPEN


def test_a_replica_that_was_started_again_is_tried_at_once() -> None:
    events = with_a2_open()
    events.observe("a2", ready=False)
    events.observe("a2", ready=True)
    assert replica(events, "a2").breaker.state is State.HALF_OPEN
    other = with_a2_open()
    other.observe("a2", preemptions=7)
    other.pass_time(0.1)
    other.observe("a2", preemptions=0)
    assert replica(other, "a2").breaker.state is State.HALF_OPEN


def test_a_streams_first_byte_passes_its_probe_and_a_late_one_fails_it() -> None:
    for late_s, state in ((0.5, State.HALF_OPEN), (61.0, State.OPEN)):
        events = with_a2_open()
        fill(events, 2)
        events.pass_time(1.0)
        assert fill(events, 1) == ["a2"]
        events.now += late_s
        permit = events.live[2][1]
        events.path.progress(permit, Progress.FIRST_TOKEN, events.now)
        assert replica(events, "a2").breaker.state is state
        assert not permit.probe


def test_the_last_probe_that_passes_by_its_first_byte_begins_a_slow_start() -> None:
    events = with_a2_open(replace(TWO, breaker=BreakerConfig(probes=1)))
    fill(events, 2)
    events.pass_time(1.0)
    assert fill(events, 1) == ["a2"]
    events.path.progress(events.live[2][1], Progress.FIRST_TOKEN, events.now)
    assert replica(events, "a2").breaker.state is State.CLOSED
    assert replica(events, "a2").warm_at > events.now


def test_long_requests_wait_a_second_for_short_ones_to_probe_with() -> None:
    events = with_a2_open(replace(TWO, slots=SlotsConfig(enabled=False)))
    fill(events, 2)
    events.offer(prompt_tokens=3000, max_tokens=10)
    events.pass_time(1.0)
    assert len(events.waiting) == 1
    events.pass_time(1.0)
    assert [(permit.replica, permit.prompt_tokens) for _, permit in events.live][2:] == [("a2", 3000)]


@pytest.mark.parametrize(
    ("streaming", "seconds", "state"),
    [
        (True, 1.0, State.HALF_OPEN),
        (True, 9.0, State.OPEN),
        (False, 1.0, State.HALF_OPEN),
        (False, 9.0, State.OPEN),
    ],
)
def test_a_probe_that_is_slow_beside_its_peers_is_no_good_probe(streaming: bool, seconds: float, state: State) -> None:
    events = with_a2_open()
    fill(events, 2)
    events.pass_time(1.0)
    peer = replica(events, "a1").pace
    assert peer is not None
    peer.forget()
    peer.note_first(1, 1.0)
    peer.note_whole(1, 10, 1.0)
    peer.close(1, 2.0)
    assert isinstance(events.offer(max_tokens=10, streaming=streaming), Admit)
    assert events.live[2][1].replica == "a2"
    events.now += seconds
    if streaming:
        events.path.progress(events.live[2][1], Progress.FIRST_TOKEN, events.now)
    else:
        events.settle(2, Outcome.OK)
    assert replica(events, "a2").breaker.state is state
