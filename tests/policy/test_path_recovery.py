"""What was learned while things were bad must not outlive them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.policy.machine import Events, replica_config
from tidegate.policy.breaker import State
from tidegate.policy.decisions import Admit, Wait
from tidegate.policy.limits.adaptive import LimitConfig
from tidegate.policy.margin import MarginConfig
from tidegate.policy.outcomes import Outcome
from tidegate.policy.path import Path
from tidegate.policy.path_config import PathConfig
from tidegate.policy.permit import Progress
from tidegate.policy.reading import ReplicaConfig
from tidegate.policy.request import NEVER

UNKNOWN = ReplicaConfig(name="a1", upstream="a")
LIMIT = LimitConfig(maximum=64)
TWENTY_EACH = tuple(replica_config(name, "a", sequences=20, kv_tokens=20 * 256) for name in ("a1", "a2"))


def under_standing_load(events: Events, seconds: float, answer_s: float, *, streaming: bool) -> None:
    """Keep more requests waiting than the limit takes; each answer takes ``answer_s``."""
    until = events.now + seconds
    while events.now < until:
        while len(events.waiting) < 5:
            events.offer(prompt_tokens=1, max_tokens=10, streaming=streaming)
        events.pass_time(answer_s)
        for _ in range(len(events.live)):
            while len(events.waiting) < 5:
                events.offer(prompt_tokens=1, max_tokens=10, streaming=streaming)
            if streaming:
                events.first_token(0)
            events.settle(0, Outcome.OK)


@pytest.mark.parametrize("streaming", [False, True])
def test_pushbacks_under_a_standing_load_are_forgotten_when_the_engine_takes_requests_again(streaming: bool) -> None:
    events = Events(Path(PathConfig(replicas=(UNKNOWN,), limit=LIMIT), 0.0))
    limit = events.path.upstreams["a"].replicas[0].limit
    for _ in range(50):
        while len(events.waiting) < 20:
            events.offer(prompt_tokens=1, max_tokens=10, streaming=streaming)
        for _ in range(len(events.live)):
            events.settle(0, Outcome.PUSHBACK, retry=False)
        events.pass_time(1.1)
    assert limit.value == limit.config.minimum
    under_standing_load(events, 40.0, 1.0, streaming=streaming)
    assert limit.value >= 32


def test_an_engine_that_has_become_slower_for_good_is_known_anew_though_its_load_never_pauses() -> None:
    events = Events(Path(PathConfig(replicas=(UNKNOWN,), limit=LIMIT), 0.0))
    limit = events.path.upstreams["a"].replicas[0].limit
    for _ in range(60):
        events.offer(prompt_tokens=1, max_tokens=10, streaming=False)
        events.pass_time(0.2)
        events.settle(0, Outcome.OK)
    lowest = limit.value
    for _ in range(40):
        under_standing_load(events, 2.0, 2.0, streaming=False)
        lowest = min(lowest, limit.value)
    assert lowest == limit.config.minimum
    under_standing_load(events, 60.0, 2.0, streaming=False)
    assert limit.value >= 32


def test_clients_with_little_time_do_not_make_their_replica_slow() -> None:
    config = PathConfig(replicas=(replica_config("a1"), replica_config("a2")))
    events = Events(Path(config, 0.0))
    for _ in range(60):
        assert isinstance(events.offer(max_tokens=10, first_byte_by=events.now + 1.0), Admit)
        events.pass_time(0.9)
        events.first_token(0)
        events.settle(0, Outcome.OK)
    assert {each.breaker.state for each in events.path.upstreams["a"].replicas} == {State.CLOSED}


def test_a_replica_whose_first_bytes_come_late_by_what_was_learned_is_left_alone() -> None:
    events = Events(Path(PathConfig(replicas=TWENTY_EACH), 0.0))
    for _ in range(40):
        assert isinstance(events.offer(max_tokens=10), Admit)
        events.first_token(0)
        events.settle(0, Outcome.OK)
    events.pass_time(12.0)
    for _ in range(40):
        assert isinstance(events.offer(max_tokens=10), Admit)
    for _, permit in events.live:
        if permit.replica == "a1":
            events.path.progress(permit, Progress.FIRST_TOKEN, events.now)
    events.pass_time(2.6)
    for _ in range(20):
        events.first_token(0)
    for _ in range(40):
        events.settle(0, Outcome.OK)
    assert [each.breaker.state for each in events.path.upstreams["a"].replicas] == [State.CLOSED, State.OPEN]


def test_an_answer_in_one_piece_is_not_slow_for_coming_when_it_is_complete() -> None:
    events = Events(Path(PathConfig(replicas=TWENTY_EACH), 0.0))
    for _ in range(40):
        assert isinstance(events.offer(max_tokens=10, streaming=False), Admit)
    events.now += 2.0 * events.live[0][1].slow_after_s
    for _ in range(40):
        events.settle(0, Outcome.OK)
    assert {each.breaker.state for each in events.path.upstreams["a"].replicas} == {State.CLOSED}


def test_one_with_little_time_stands_before_those_with_much_and_is_not_refused_for_their_sake() -> None:
    config = PathConfig(replicas=(replica_config("a1", sequences=1),), margin=MarginConfig(class_share=1.0))
    events = Events(Path(config, 0.0))
    for _ in range(40):
        events.offer(prompt_tokens=1000, max_tokens=10)
    for _ in range(30):
        events.pass_time(0.25)
        events.settle(0, Outcome.OK)
    assert events.path.upstreams["a"].tokens_per_s("interactive", events.now) == pytest.approx(4000, rel=0.2)
    for _ in range(20):
        assert isinstance(events.offer(prompt_tokens=1000, max_tokens=10), Wait)
    decision = events.offer(prompt_tokens=1000, max_tokens=10, first_byte_by=events.now + 2.0)
    assert isinstance(decision, Wait)
    events.settle(0, Outcome.OK)
    assert events.live[0][0].first_byte_by < NEVER


def test_a_request_of_no_tokens_gives_its_place_in_the_quota_back() -> None:
    config = PathConfig(replicas=(UNKNOWN,))
    config = replace(config, quota=replace(config.quota, max_in_flight=1))
    events = Events(Path(config, 0.0))
    for _ in range(3):
        assert isinstance(events.offer(prompt_tokens=0, max_tokens=0), Admit)
        events.settle(0, Outcome.OK)
