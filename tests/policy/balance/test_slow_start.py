"""When a replica starts slowly: after it was away, after its breaker has closed, when a reload brings it."""

from __future__ import annotations

from dataclasses import replace

from tests.policy.machine import Events, replica_config
from tidegate.policy.balance.balancer import BalanceConfig
from tidegate.policy.breaker import State
from tidegate.policy.decisions import Admit
from tidegate.policy.outcomes import Outcome
from tidegate.policy.path import Path
from tidegate.policy.path_config import PathConfig
from tidegate.policy.replica import Replica

CONFIG = PathConfig(replicas=(replica_config("a1"), replica_config("a2")), balance=BalanceConfig(slow_start_s=10.0))


def replicas(events: Events) -> dict[str, Replica]:
    return {replica.name: replica for replica in events.path.upstreams["a"].replicas}


def test_none_starts_slowly_when_all_start() -> None:
    events = Events(Path(CONFIG, 5.0), now=5.0)
    events.observe("a1")
    assert {replica.warm_at for replica in replicas(events).values()} == {0.0}


def test_one_that_was_away_does() -> None:
    events = Events(Path(CONFIG, 0.0))
    events.observe("a1", ready=False)
    events.pass_time(3.0)
    events.observe("a1")
    assert replicas(events)["a1"].warm_at == 13.0
    events.pass_time(3.0)
    events.observe("a1")
    assert replicas(events)["a1"].warm_at == 13.0


def test_one_that_a_reload_brings_does() -> None:
    events = Events(Path(CONFIG, 0.0))
    events.pass_time(4.0)
    events.path.apply(replace(CONFIG, replicas=(*CONFIG.replicas, replica_config("a3"))), 4.0)
    assert {name: each.warm_at for name, each in replicas(events).items()} == {"a1": 0.0, "a2": 0.0, "a3": 14.0}


def test_a_reload_changes_the_time_of_the_next_start_and_not_of_a_running_one() -> None:
    events = Events(Path(CONFIG, 0.0))
    events.observe("a1", ready=False)
    events.observe("a1")
    events.path.apply(replace(CONFIG, balance=BalanceConfig(slow_start_s=0.0)), 1.0)
    replica = replicas(events)["a1"]
    assert (replica.warm_at, replica.warmth(5.0)) == (10.0, 0.5)
    events.pass_time(2.0)
    events.observe("a1", ready=False)
    events.observe("a1")
    assert replica.warm_at == 2.0


def test_one_whose_breaker_has_closed_does() -> None:
    events = Events(Path(CONFIG, 0.0))
    a1 = replicas(events)["a1"]
    while _is_closed(a1):
        decision = events.offer(prompt_tokens=10, max_tokens=10)
        assert isinstance(decision, Admit)
        failed = decision.permit.replica == "a1"
        events.settle(0, Outcome.ENGINE_ERROR if failed else Outcome.OK, retry=False)
    events.pass_time(CONFIG.breaker.cooldown_s)
    replicas(events)["a2"].draining = True
    for _ in range(CONFIG.breaker.probes):
        assert a1.warm_at == 0.0
        assert isinstance(events.offer(prompt_tokens=10, max_tokens=10), Admit)
        events.settle(0, Outcome.OK)
    assert _is_closed(a1)
    assert a1.warm_at == events.now + 10.0


def _is_closed(replica: Replica) -> bool:
    return replica.breaker.state is State.CLOSED
