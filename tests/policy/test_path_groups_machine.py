"""Path's invariants under random events, where two models share one pool."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import rule

from tests.policy.machine import Events, View, replica_config
from tests.policy.test_path_machine import CONFIG, PathMachine
from tidegate.policy.decisions import Admit, Answer, Refuse
from tidegate.policy.groups import GroupConfig, GroupsConfig, PoolConfig
from tidegate.policy.limits.prefill import PrefillConfig
from tidegate.policy.request import Request
from tidegate.policy.slots import SlotsConfig

REPLICAS = (
    replica_config("a1", group="a", bytes_per_token=1),
    replica_config("a2", group="a", sequences=4, bytes_per_token=1),
    replica_config("b1", "b", group="b", bytes_per_token=2),
)
POOL = PoolConfig(
    name="card",
    budget_bytes=9000,
    groups=(
        GroupConfig(name="a", floor_bytes=3500, cap_bytes=9000),
        GroupConfig(name="b", floor_bytes=5000, cap_bytes=8000, reserve_bytes=512),
    ),
)
"""Small enough for two or three requests to fill it."""


class SharedEvents(Events):
    """Sees to it that no loan is made while a floor is owed: a group that waited before an event, was given
    nothing by it and waits after it, has not seen another go above its floor. Groups bear the names of upstreams."""

    owed: frozenset[str] = frozenset()
    is_advancing = False

    def _take(self, request: Request, decision: Admit | Refuse | Answer) -> None:
        super()._take(request, decision)
        if isinstance(decision, Admit) and not self.is_advancing:
            assert not (self._is_a_loan(request.upstream) and self.owed - {request.upstream})

    def advance(self) -> None:
        before = len(self.live)
        self.is_advancing = True
        super().advance()
        self.is_advancing = False
        served = {request.upstream for request, _ in self.live[before:]}
        owed = frozenset(name for name, group in self._groups().items() if group["waits"])
        for name in served:
            assert not (self._is_a_loan(name) and (owed & self.owed) - served)
        self.owed = owed

    def _is_a_loan(self, upstream: str) -> bool:
        return bool(self._groups()[upstream]["borrowed_bytes"] > 0)

    def _groups(self) -> View:
        return cast(View, self.path.view(self.now)["groups"])


class SharedPoolMachine(PathMachine):
    events_of = SharedEvents
    base = replace(CONFIG, replicas=REPLICAS, groups=GroupsConfig(pools=(POOL,)), prefill=PrefillConfig(enabled=False))
    """Without a bound on prefill, so that memory is what they wait for."""

    @rule(upstream=st.sampled_from(["a", "b"]), prompt_tokens=st.integers(100, 2500), times=st.integers(2, 4))
    def come_together(self, upstream: str, prompt_tokens: int, times: int) -> None:
        """Several at once that can wait, so that memory is short."""
        for _ in range(times):
            self.events.offer(upstream=upstream, prompt_tokens=prompt_tokens, max_tokens=100, class_hint="batch")

    @rule()
    def an_idle_pool_lends_again(self) -> None:
        """Above the floor of 5 000 bytes: claims and peaks of the past are forgotten."""
        assert isinstance(self.rested().offer(upstream="b", prompt_tokens=3500, max_tokens=10), Admit)


class LearnedSharedPoolMachine(SharedPoolMachine):
    base = replace(SharedPoolMachine.base, slots=SlotsConfig(mode="learned"))


SharedPoolMachine.TestCase.settings = settings(max_examples=120, stateful_step_count=60, deadline=None)
TestSharedPoolMachine = SharedPoolMachine.TestCase
LearnedSharedPoolMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=60, deadline=None)
TestLearnedSharedPoolMachine = LearnedSharedPoolMachine.TestCase
