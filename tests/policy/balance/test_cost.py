"""Which replica gets the next request, and draws that are even and independent."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.policy.machine import replica_config
from tidegate.policy.balance.cost import FIRST, RETRY, SECOND, TIE, least_cost, spread
from tidegate.policy.breaker import BreakerConfig
from tidegate.policy.decisions import Reason
from tidegate.policy.limits.adaptive import LimitConfig
from tidegate.policy.limits.prefill import PrefillConfig
from tidegate.policy.replica import Replica
from tidegate.policy.request import Request

PURPOSES = (TIE, FIRST, SECOND, RETRY)


def replica(name: str, pending_tokens: int = 0, running: int = 0, token_s: float = 0.0) -> Replica:
    config = replica_config(name, "a", sequences=100, kv_tokens=10**6)
    made = Replica(config, LimitConfig(), PrefillConfig(enabled=False), BreakerConfig())
    made.pending_tokens, made.in_flight, made.token_s = pending_tokens, running, token_s
    return made


def chosen(*replicas: Replica, prompt_tokens: int = 100, draw: int = 0, avoid: str | None = None) -> str:
    request = Request(1, "a", 0.0, draw, prompt_tokens=prompt_tokens)
    found = least_cost(replicas, request, 10, 0.0, avoid)
    return found.name if isinstance(found, Replica) else found.value


@given(
    st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 50), st.floats(1e-5, 1e-2)), min_size=1, max_size=16),
    st.integers(1, 4000),
    st.integers(0, 2**64 - 1),
)
def test_the_one_of_least_cost_is_taken(states: list[tuple[int, int, float]], prompt_tokens: int, draw: int) -> None:
    replicas = [replica(str(index), *state) for index, state in enumerate(states)]
    costs = {
        str(index): (pending + prompt_tokens) * (running + 1) * (token_s if len(states) > 1 else 1)
        for index, (pending, running, token_s) in enumerate(states)
    }
    taken = chosen(*replicas, prompt_tokens=prompt_tokens, draw=draw)
    assert costs[taken] == pytest.approx(min(costs.values()))


def test_queued_prefill_and_the_batch_both_cost() -> None:
    assert chosen(replica("a", 500, 1), replica("b", 0, 1)) == "b"
    assert chosen(replica("a", 0, 9), replica("b", 100, 1)) == "b"


def test_a_slow_replica_counts_for_what_it_is_once_all_are_known() -> None:
    assert chosen(replica("slow", 0, 1, 0.01), replica("fast", 300, 1, 0.001)) == "fast"
    assert chosen(replica("slow", 0, 1, 0.01), replica("unknown", 300, 1)) == "slow"


def test_equals_share_by_the_draw() -> None:
    equals = [replica(name) for name in "abcd"]
    counts = dict.fromkeys("abcd", 0)
    for draw in range(0, 2**16, 16):
        counts[chosen(*equals, draw=draw)] += 1
    assert set(counts.values()) == {1024}


def test_the_one_to_avoid_is_never_taken_and_closed_ones_say_why() -> None:
    full, down = replica("full", running=100), replica("down")
    down.ready = False
    assert chosen(replica("a", 9999), replica("b"), avoid="b") == "a"
    assert chosen(replica("b"), avoid="b") == Reason.NO_REPLICA.value
    assert chosen() == Reason.NO_REPLICA.value
    assert chosen(down) == Reason.NO_REPLICA.value
    for draw in range(0, 2**16, 2**13):
        assert chosen(full, down, draw=draw) == Reason.SEQUENCES.value


@pytest.mark.parametrize("purpose", PURPOSES)
@pytest.mark.parametrize("choices", [1, 2, 3, 7, 16, 100])
def test_a_draw_is_even_over_its_choices(purpose: int, choices: int) -> None:
    counts = [0] * choices
    for bits in range(2**16):
        counts[spread(bits << (16 * purpose), purpose, choices)] += 1
    assert max(counts) - min(counts) <= 1


@given(st.integers(0, 2**64 - 1), st.integers(1, 2**16))
def test_a_draw_stays_within_its_choices_and_is_the_same_again(draw: int, choices: int) -> None:
    for purpose in PURPOSES:
        assert 0 <= spread(draw, purpose, choices) < choices
        assert spread(draw, purpose, choices) == spread(draw, purpose, choices)


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**16 - 1), st.sampled_from(PURPOSES))
def test_purposes_do_not_share_bits(draw: int, bits: int, purpose: int) -> None:
    other = draw & ~(0xFFFF << (16 * purpose)) | bits << (16 * purpose)
    assert all(spread(draw, each, 65536) == spread(other, each, 65536) for each in PURPOSES if each != purpose)
    assert spread(other, purpose, 65536) == bits
