"""The breaker as requests meet it: closed for the rest, probed by a few, and never on the last replica."""

from __future__ import annotations

from dataclasses import replace

from tests.policy.machine import Events, replica_config
from tidegate.policy.breaker import BreakerConfig, State
from tidegate.policy.decisions import Admit, Wait
from tidegate.policy.outcomes import Outcome
from tidegate.policy.path import Path
from tidegate.policy.path_config import PathConfig
from tidegate.policy.replica import Replica

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
    assert events.path.next_wakeup() == 5.0
    events.pass_time(5.0)
    probes = [permit for _, permit in events.live if permit.replica == "a2"]
    assert [permit.probe for permit in probes] == [True] * 3
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
    assert replica(events, "a2").breaker.open_until == 15.0
    assert events.path.next_wakeup() == 10.0


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
    config = replace(TWO, breaker=BreakerConfig(cooldown_s=50.0))
    events = with_a2_open(config)
    assert fill(events, 3)[-1] == "waits"
    assert isinstance(events.offer(max_tokens=10, first_byte_by=2.0), Wait)
    events.pass_time(10.0)
    assert not events.waiting
