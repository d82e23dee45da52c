"""What is remembered of prompts, how long, and how much of it is believed."""

from __future__ import annotations

import pytest

from tests.policy.balance.test_balancer import replica
from tidegate.policy.balance.prefixes import Prefixes
from tidegate.policy.cache_account import FEW_TOKENS, LEARNING_RATE, CacheAccount
from tidegate.policy.reading import Reading
from tidegate.policy.request import Request


def prompt(tokens: int, *beginnings: tuple[int, float]) -> Request:
    return Request(1, "a", 0.0, 0, prompt_tokens=tokens, prefixes=beginnings)


def told(**totals: int) -> Reading:
    return Reading(at=1.0, **{"prefix_asked_tokens": 0, "prefix_found_tokens": 0, **totals})  # type: ignore[arg-type]  # all counts


def test_the_longest_beginning_counts_and_the_next_turn_finds_all_of_the_one_before() -> None:
    a, held = replica("a"), Prefixes()
    held.note(prompt(1000, (2, 0.8), (1, 0.4)), a)
    assert held.cached_tokens(prompt(1500, (3, 0.9), (2, 0.6), (1, 0.3))) == {a: 1000}
    assert held.cached_tokens(prompt(1500, (4, 0.6), (1, 0.3))) == {a: 400}
    assert held.cached_tokens(prompt(1500, (4, 0.6))) == {}
    assert held.cached_tokens(prompt(1500)) == {}


def test_one_token_is_computed_in_any_case() -> None:
    a, held = replica("a"), Prefixes()
    held.note(prompt(1000, (1, 1.0)), a)
    assert held.cached_tokens(prompt(800, (1, 1.0))) == {a: 799}


def test_a_prompt_is_held_until_as_many_new_tokens_have_been_read_as_the_pool_has() -> None:
    a, held = replica("a", kv_tokens=4000), Prefixes()
    held.note(prompt(1000, (1, 1.0)), a)
    held.note(prompt(3000, (2, 1.0)), a)
    assert held.cached_tokens(prompt(1000, (1, 1.0))) == {a: 999}
    held.note(prompt(1000, (3, 1.0)), a)
    assert held.cached_tokens(prompt(1000, (1, 1.0))) == {}
    assert held.note(prompt(1000, (1, 1.0)), a) == 0


def test_what_is_used_again_is_young_again_and_fills_nothing() -> None:
    a, held = replica("a", kv_tokens=4000), Prefixes()
    held.note(prompt(1000, (1, 1.0)), a)
    for _ in range(9):
        held.note(prompt(1000, (1, 1.0)), a)
    assert a.cache.read_tokens < 1100
    held.note(prompt(2500, (2, 1.0)), a)
    assert a in held.cached_tokens(prompt(1000, (1, 1.0)))


def test_a_pool_of_unknown_size_forgets_by_the_number_of_prompts_alone() -> None:
    a, held = replica("a"), Prefixes(most=3)
    a.config = type(a.config)(name="a", upstream="a")
    for digest in range(4):
        held.note(prompt(10**7, (digest, 1.0)), a)
    assert len(held) == 3
    assert held.cached_tokens(prompt(100, (0, 1.0))) == {}
    assert held.cached_tokens(prompt(100, (1, 1.0))) == {a: 99}


def test_several_replicas_may_hold_the_same() -> None:
    a, b, held = replica("a"), replica("b"), Prefixes()
    held.note(prompt(1000, (2, 0.8), (1, 0.4)), a)
    held.note(prompt(500, (1, 0.8)), b)
    assert held.cached_tokens(prompt(1000, (2, 0.8), (1, 0.4))) == {a: 999, b: 500}


@pytest.mark.parametrize(
    "reading",
    [Reading(at=2.0, ready=False), told(prefix_asked_tokens=50), told(prefix_asked_tokens=100, preemptions=1)],
)
def test_an_engine_that_was_away_or_counts_anew_has_forgotten(reading: Reading) -> None:
    a, held = replica("a"), Prefixes()
    a.observe(told(prefix_asked_tokens=100, preemptions=2))
    held.note(prompt(1000, (1, 1.0)), a)
    reading.at = 2.0
    a.observe(reading)
    assert held.cached_tokens(prompt(1000, (1, 1.0))) == {}
    held.note(prompt(1000, (1, 1.0)), a)
    assert held.cached_tokens(prompt(1000, (1, 1.0))) == {a: 999}


def test_hits_count_as_done_only_where_the_engine_tells_of_them() -> None:
    a, held = replica("a"), Prefixes()
    held.note(prompt(1000, (1, 1.0)), a)
    assert held.note(prompt(1000, (1, 1.0)), a) == 0
    a.observe(Reading(at=1.0))
    assert held.note(prompt(1000, (1, 1.0)), a) == 0
    a.observe(told())
    assert held.note(prompt(1000, (1, 1.0)), a) == 999


def test_an_engine_that_finds_nothing_is_believed_less_until_it_is_not() -> None:
    account, found = CacheAccount(), 0
    for _ in range(2):
        account.observe(None, told())
    account.read(FEW_TOKENS, FEW_TOKENS - 1, FEW_TOKENS - 1)
    account.observe(None, told())
    assert account.trust == 1.0
    account.read(FEW_TOKENS, FEW_TOKENS, FEW_TOKENS)
    account.observe(None, told())
    assert account.trust == pytest.approx(1 - LEARNING_RATE)
    for _ in range(20):
        found += 2 * FEW_TOKENS
        account.read(FEW_TOKENS, FEW_TOKENS, FEW_TOKENS)
        account.observe(None, told(prefix_found_tokens=found))
    assert account.trust == pytest.approx(1.0, abs=0.01)


def test_what_is_believed_of_a_hit_is_its_share() -> None:
    a, held = replica("a"), Prefixes()
    held.note(prompt(1000, (1, 1.0)), a)
    a.cache.trust = 0.25
    assert held.cached_tokens(prompt(1000, (1, 1.0))) == {a: 250}
