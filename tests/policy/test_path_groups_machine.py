"""Path's invariants under random events, where two models share one pool."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import settings
from hypothesis.stateful import rule

from tests.policy.machine import replica_config
from tests.policy.test_path_machine import CONFIG, PathMachine
from tidegate.policy.decisions import Admit
from tidegate.policy.groups import GroupConfig, GroupsConfig, PoolConfig
from tidegate.policy.slots import SlotsConfig

REPLICAS = (
    replica_config("a1", group="a", bytes_per_token=1),
    replica_config("a2", group="a", sequences=4, bytes_per_token=1),
    replica_config("b1", "b", group="b", kv_tokens=4096, bytes_per_token=3),
)
POOL = PoolConfig(
    name="card",
    budget_bytes=16_000,
    groups=(
        GroupConfig(name="a", floor_bytes=5000, cap_bytes=16_000, reserve_bytes=512),
        GroupConfig(name="b", floor_bytes=9000, cap_bytes=12_000, reserve_bytes=1000),
    ),
)


class SharedPoolMachine(PathMachine):
    base = replace(CONFIG, replicas=REPLICAS, groups=GroupsConfig(pools=(POOL,)))

    @rule()
    def an_idle_pool_lends_again(self) -> None:
        """Above the floor of 9 000 bytes: claims and peaks of the past are forgotten."""
        assert isinstance(self.rested().offer(upstream="b", prompt_tokens=3500, max_tokens=10), Admit)


class LearnedSharedPoolMachine(SharedPoolMachine):
    base = replace(SharedPoolMachine.base, slots=SlotsConfig(mode="learned"))


SharedPoolMachine.TestCase.settings = settings(max_examples=120, stateful_step_count=60, deadline=None)
TestSharedPoolMachine = SharedPoolMachine.TestCase
LearnedSharedPoolMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=60, deadline=None)
TestLearnedSharedPoolMachine = LearnedSharedPoolMachine.TestCase
