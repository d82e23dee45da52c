"""Conversations on engines with a prefix cache, and who sends them where."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tidegate.errors import ConfigError
from tidegate.simulate.clients import Clients
from tidegate.simulate.clock import Clock
from tidegate.simulate.driver import request_of
from tidegate.simulate.policies import find_policy
from tidegate.simulate.run import play
from tidegate.simulate.scenario import Scenario
from tidegate.simulate.scenarios import find_scenario
from tidegate.simulate.scenarios.sessions import Sessions
from tidegate.simulate.stage import Stage
from tidegate.simulate.visit import BLOCK_TOKENS, Call, Visit


@pytest.fixture(scope="module")
def scenario() -> Scenario:
    return Sessions(16.0, duration_s=150.0).build(1)


def p95_of_first_tokens(scenario: Scenario, policy: str) -> float:
    clock = Clock()
    clients = Clients(clock, scenario.tries)
    setup = find_policy(policy)(Stage(scenario, 1, clock, clients))
    play(scenario, setup, clock, clients)
    waited = sorted(each.first_token_at - each.demand.at for each in clients.visits if each.first_token_at is not None)
    assert len(waited) >= 0.95 * len(scenario.demands)
    return waited[int(0.95 * len(waited))]


def test_who_has_read_a_prompt_is_worth_knowing(scenario: Scenario) -> None:
    found = {name: p95_of_first_tokens(scenario, name) for name in ("native", "tidegate:no-affinity", "tidegate")}
    assert found["tidegate"] < 0.5 * found["tidegate:no-affinity"]
    assert found["tidegate"] < 0.5 * found["native"]


def test_plain_hashing_keeps_a_conversation_together(scenario: Scenario) -> None:
    assert p95_of_first_tokens(scenario, "hashed") < p95_of_first_tokens(scenario, "native")
    strangers = replace(scenario, demands=[replace(each, blocks=()) for each in scenario.demands[:40]])
    assert p95_of_first_tokens(strangers, "hashed") > 0


def test_each_turn_begins_as_the_one_before_it_did(scenario: Scenario) -> None:
    longest = max(scenario.demands, key=lambda demand: len(demand.blocks))
    before = [each for each in scenario.demands if each.blocks and longest.blocks[: len(each.blocks)] == each.blocks]
    assert len(before) > 2
    assert all(len(each.blocks) == each.prompt_tokens // BLOCK_TOKENS for each in scenario.demands)


def test_policies_see_digests_at_every_doubling(scenario: Scenario) -> None:
    demand = replace(scenario.demands[0], prompt_tokens=6 * BLOCK_TOKENS, blocks=(1, 2, 3, 4, 5, 6))
    assert request_of(Call(1, Visit(demand), 0.0)).prefixes == ((4, 4 / 6), (2, 2 / 6), (1, 1 / 6))


def test_a_trace_can_be_played_on_engines_with_a_cache() -> None:
    built = find_scenario("mooncake@2/cached")
    assert {engine.cached_block_tokens for engine in built.engines} == {BLOCK_TOKENS}  # type: ignore[attr-defined]  # a Replay
    with pytest.raises(ConfigError, match="hashed:x: expected hashed"):
        find_policy("hashed:x")
