"""One model name with few or many replicas, and what can be said about waiting for it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from tests.policy.machine import Events, replica_config
from tidegate.policy.balance.balancer import MOST_SCANNED
from tidegate.policy.decisions import Admit, Reason, Refuse, Wait
from tidegate.policy.outcomes import Outcome
from tidegate.policy.path import Path
from tidegate.policy.path_config import PathConfig
from tidegate.policy.reading import Capacity, ReplicaConfig
from tidegate.policy.request import Request

MANY = PathConfig(replicas=tuple(replica_config(f"a{number}", sequences=2) for number in range(40)))


def where(decision: object) -> str:
    assert isinstance(decision, Admit)
    return decision.permit.replica


def test_of_many_replicas_two_are_drawn_and_the_cheaper_of_them_is_taken() -> None:
    assert len(MANY.replicas) > MOST_SCANNED
    events = Events(Path(MANY, 0.0))
    taken = Counter(where(events.offer(prompt_tokens=10, max_tokens=10)) for _ in range(40))
    assert len(taken) >= 24
    assert max(taken.values()) <= 2


def test_when_the_drawn_ones_are_closed_all_are_looked_at() -> None:
    events = Events(Path(MANY, 0.0))
    for number in range(39):
        events.observe(f"a{number}", ready=False)
    for _ in range(2):
        assert where(events.offer(prompt_tokens=10, max_tokens=10)) == "a39"
    decision = events.offer(prompt_tokens=10, max_tokens=10)
    assert isinstance(decision, Wait)
    assert decision.reason is Reason.SEQUENCES


def test_the_owner_of_a_session_is_looked_at_too_and_taken_while_it_is_cheap() -> None:
    events = Events(Path(MANY, 0.0))
    owned = Counter[str]()
    for _ in range(30):
        owned[where(events.offer(prompt_tokens=10, max_tokens=10, prefixes=((47, 1.0),)))] += 1
        events.settle(0, Outcome.OK)
    assert len(owned) == 1
    alone = Counter[str]()
    for _ in range(30):
        alone[where(events.offer(prompt_tokens=10, max_tokens=10))] += 1
        events.settle(0, Outcome.OK)
    assert len(alone) >= 15


def test_a_retry_among_many_goes_elsewhere() -> None:
    events = Events(Path(MANY, 0.0))
    for _ in range(9):
        first = where(events.offer(prompt_tokens=10, max_tokens=10))
        request, permit = events.live.pop()
        events.path.settle(permit, Outcome.CONNECT_FAILED, 0.0)
        assert where(events.path.again(request.id, Outcome.CONNECT_FAILED, 0.0)) != first


def test_the_rate_of_the_replicas_serves_until_the_queue_has_one() -> None:
    events = Events(Path(PathConfig(replicas=(replica_config("a1"), replica_config("a2"))), 0.0))
    upstream = events.path.upstreams["a"]
    assert upstream.tokens_per_s("interactive", 0.0) is None
    for replica, token_s in zip(upstream.replicas, (0.001, 0.0005), strict=True):
        replica.token_s = token_s
    assert upstream.tokens_per_s("interactive", 0.0) == pytest.approx(3000)
    upstream.replicas[1].draining = True
    assert upstream.tokens_per_s("interactive", 0.0) == pytest.approx(1000)
    upstream.replicas[0].ready = False
    assert upstream.tokens_per_s("interactive", 0.0) is None


def test_service_times_are_those_of_the_best_replica_after_a_wave_of_answers() -> None:
    events = Events(Path(PathConfig(replicas=(replica_config("a1"), replica_config("a2"))), 0.0))
    upstream = events.path.upstreams["a"]
    assert upstream.service_s(100, 50) == (0.0, 0.0)
    for replica, seconds in zip(upstream.replicas, (4.0, 2.0), strict=True):
        for tokens in (10, 100, 1000, 10):
            replica.first_token.learn(tokens, seconds)
            replica.whole.learn(tokens, 3 * seconds)
    upstream.output_tokens.add(20.0)
    first_s, whole_s = upstream.service_s(100, 50)
    assert (first_s, whole_s) == pytest.approx((2.0, 6.0))


def test_an_expected_answer_is_no_longer_than_its_bound() -> None:
    upstream = Path(PathConfig(replicas=(replica_config("a1"),)), 0.0).upstreams["a"]
    for tokens in (10, 100, 1000, 10):
        upstream.replicas[0].whole.learn(tokens, tokens / 100)
    upstream.output_tokens.add(500.0)
    assert upstream.service_s(1, 2000)[1] == pytest.approx(5.0, rel=0.01)
    assert upstream.service_s(1, 100)[1] == pytest.approx(1.0, rel=0.01)


def test_the_length_of_answers_is_learned_per_sequence() -> None:
    events = Events(Path(PathConfig(replicas=(replica_config("a1"),)), 0.0))
    events.offer(max_tokens=100, sequences=4)
    _, permit = events.live.pop()
    events.path.settle(permit, Outcome.OK, 1.0, output_tokens=80)
    assert events.path.upstreams["a"].output_tokens.value == 20.0


@pytest.mark.parametrize(
    ("capacities", "fits"),
    [
        ((Capacity(kv_tokens=1024), Capacity(kv_tokens=1024)), False),
        ((Capacity(kv_tokens=1024), Capacity(kv_tokens=4096)), True),
        ((Capacity(kv_tokens=4096, sequences=1), Capacity(kv_tokens=1024, sequences=8)), False),
        ((Capacity(sequences=1),), False),
        ((Capacity(sequences=2),), True),
        ((Capacity(kv_tokens=1024), Capacity()), True),
    ],
)
def test_a_request_never_fits_only_if_it_fits_no_replica(capacities: tuple[Capacity, ...], fits: bool) -> None:
    replicas = tuple(
        ReplicaConfig(name=f"a{number}", upstream="a", capacity=each) for number, each in enumerate(capacities)
    )
    decision = Events(Path(PathConfig(replicas=replicas), 0.0)).offer(prompt_tokens=600, max_tokens=400, sequences=2)
    assert isinstance(decision, Refuse) is not fits


def test_the_context_is_the_longest_that_a_replica_offers_and_unknown_if_one_does_not_say() -> None:
    short, long, silent = (
        replace(replica_config(name), capacity=Capacity(context_tokens=tokens))
        for name, tokens in (("a1", 100), ("a2", 200), ("a3", None))
    )
    path = Path(PathConfig(replicas=(short, long)), 0.0)
    assert path.upstreams["a"].context_tokens == 200
    path.apply(PathConfig(replicas=(short, long, silent)), 0.0)
    assert path.upstreams["a"].context_tokens is None


POOL = Capacity(kv_tokens=8192, slot_tokens=256, sequences=8)


def hinges(capacity: Capacity, prompt_tokens: int, output_tokens: int = 16, sequences: int = 1) -> bool:
    replica = ReplicaConfig(name="a1", upstream="a", capacity=capacity)
    upstream = Path(PathConfig(replicas=(replica,)), 0.0).upstreams["a"]
    request = Request(1, "a", 0.0, 0, prompt_tokens=prompt_tokens, sequences=sequences)
    return upstream.hinges_on_count(request, output_tokens)


@pytest.mark.parametrize(
    ("prompt_tokens", "matters"), [(100, False), (1180, False), (1182, True), (2048, True), (6301, True), (6302, False)]
)
def test_a_count_matters_for_prompts_that_are_estimated_near_the_context(prompt_tokens: int, matters: bool) -> None:
    assert hinges(Capacity(kv_tokens=65536, context_tokens=2048), prompt_tokens) is matters


@pytest.mark.parametrize(
    ("output_tokens", "sequences", "matters"),
    [
        (400, 8, True),
        (240, 8, True),
        (1000, 8, False),
        (400, 4, False),
        (7160, 1, True),
        (7152, 1, False),
        (20_000, 1, False),
    ],
)
def test_a_count_matters_where_the_whole_pool_may_or_may_not_hold_the_request(
    output_tokens: int, sequences: int, matters: bool
) -> None:
    # An estimate of 800 may be 615 or 1040 in truth; the pool has 32 slots of 256 tokens.
    assert hinges(POOL, 800, output_tokens, sequences) is matters


def test_where_nothing_is_known_to_be_too_long_no_count_matters() -> None:
    assert not hinges(Capacity(), 1_000_000, 1_000_000)
    assert not hinges(Capacity(sequences=4), 1_000_000)
