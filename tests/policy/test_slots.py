"""Slots: what a request reserves, and a ledger that always adds up."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests.policy.machine import Events, replica_config
from tidegate.policy.decisions import Admit, Reason, Refuse
from tidegate.policy.path import Path
from tidegate.policy.path_config import PathConfig
from tidegate.policy.reading import Capacity
from tidegate.policy.request import Request
from tidegate.policy.slots import Slots, SlotsConfig

CAPACITY = Capacity(kv_tokens=2560, slot_tokens=256)


@given(st.integers(0, 5000), st.integers(0, 5000), st.integers(1, 64), st.integers(1, 1024))
def test_slots_cover_prompt_and_output_of_every_sequence_and_no_slot_is_spare(
    prompt_tokens: int, output_tokens: int, sequences: int, slot_tokens: int
) -> None:
    per_sequence, rest = divmod(
        Slots(Capacity(slot_tokens=slot_tokens)).needed(prompt_tokens, output_tokens, sequences), sequences
    )
    assert rest == 0
    assert per_sequence * slot_tokens >= prompt_tokens + output_tokens > (per_sequence - 1) * slot_tokens


def test_a_request_of_no_tokens_reserves_nothing() -> None:
    assert Slots(CAPACITY).needed(0, 0, 4) == 0


def test_the_pool_is_rounded_down_to_whole_slots() -> None:
    assert Capacity(kv_tokens=2559, slot_tokens=256).slots == 9
    assert Capacity(slot_tokens=256).slots is None


def test_foreign_load_counts_as_reserved() -> None:
    slots = Slots(CAPACITY)
    slots.foreign = 4
    assert slots.fits(6)
    assert not slots.fits(7)
    assert slots.view()["free"] == 6


def test_foreign_load_beyond_the_pool_leaves_nothing_free_and_no_debt() -> None:
    slots = Slots(CAPACITY)
    slots.foreign = 100
    assert slots.free == 0
    assert not slots.fits(1)


def test_an_unknown_pool_only_counts() -> None:
    slots = Slots(Capacity())
    slots.reserved += 1000
    assert slots.fits(10**9)
    assert slots.free is None


def test_usage_beyond_the_reservation_is_an_overdraft() -> None:
    slots = Slots(CAPACITY)
    slots.note_usage(2, 512)
    assert slots.overdrafts == 0
    slots.note_usage(2, 513)
    assert slots.overdrafts == 1


class SlotsMachine(RuleBasedStateMachine):
    """Reserve only what fits, start, release: never over the total, and the states add up."""

    def __init__(self) -> None:
        super().__init__()
        self.slots = Slots(CAPACITY)
        self.reserved: list[int] = []
        self.used: list[int] = []

    @rule(wanted=st.integers(0, 12))
    def reserve(self, wanted: int) -> None:
        if self.slots.fits(wanted):
            self.slots.reserved += wanted
            self.reserved.append(wanted)

    @precondition(lambda self: self.reserved)
    @rule()
    def start(self) -> None:
        self.used.append(self.reserved.pop())
        self.slots.start(self.used[-1])

    @precondition(lambda self: self.reserved or self.used)
    @rule(started=st.booleans())
    def release(self, started: bool) -> None:
        holders = self.used if (started and self.used) or not self.reserved else self.reserved
        self.slots.release(holders.pop(), started=holders is self.used)

    @rule(foreign=st.integers(0, 12))
    def see_foreign_load(self, foreign: int) -> None:
        self.slots.foreign = foreign

    @invariant()
    def the_states_add_up(self) -> None:
        view = self.slots.view()
        assert view["reserved"] == sum(self.reserved)
        assert view["used"] == sum(self.used)
        assert self.slots.held == sum(self.reserved) + sum(self.used) <= 10
        assert self.slots.free == max(0, 10 - self.slots.held - self.slots.foreign)


SlotsMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
TestSlots = SlotsMachine.TestCase


CONFIG = SlotsConfig(default_max_tokens=1000)


def request_of(prompt_tokens: int, max_tokens: int | None = None, *, exact: bool = True) -> Request:
    return Request(1, "a", 0.0, 0, prompt_tokens=prompt_tokens, prompt_exact=exact, max_tokens=max_tokens)


def test_a_clients_own_bound_stays_as_it_is() -> None:
    assert CONFIG.bound(request_of(10, 5000), 4096) is None
    assert CONFIG.output_tokens(request_of(10, 5000), 4096) == 5000
    assert CONFIG.output_tokens(request_of(10, 0), 4096) == 0


def test_a_request_without_a_bound_gets_ours() -> None:
    for context_tokens in (None, 4096):
        assert CONFIG.bound(request_of(10), context_tokens) == 1000
        assert CONFIG.output_tokens(request_of(10), context_tokens) == 1000


@pytest.mark.parametrize(("exact", "longest"), [(True, 3096), (False, 2381)])
def test_near_the_end_of_the_context_no_bound_is_written_and_all_of_it_is_reserved(exact: bool, longest: int) -> None:
    assert CONFIG.bound(request_of(longest, exact=exact), 4096) == 1000
    beyond = request_of(longest + 1, exact=exact)
    assert CONFIG.bound(beyond, 4096) is None
    assert CONFIG.output_tokens(beyond, 4096) == 4096 - beyond.prompt_tokens
    assert CONFIG.output_tokens(request_of(4096, exact=exact), 4096) == 1


def test_a_long_prompt_without_a_bound_is_admitted_within_the_context_instead_of_refused_by_the_engine() -> None:
    events = Events(Path(PathConfig(replicas=(replica_config("a1", kv_tokens=4096),)), 0.0))
    decision = events.offer(prompt_tokens=3500, prompt_exact=True)
    assert isinstance(decision, Admit)
    assert decision.alteration is None
    assert decision.permit.slots == 16


def test_a_short_prompt_without_a_bound_gets_one_that_the_driver_writes() -> None:
    events = Events(Path(PathConfig(replicas=(replica_config("a1"),)), 0.0))
    decision = events.offer(prompt_tokens=100)
    assert isinstance(decision, Admit)
    assert decision.alteration is not None
    assert decision.alteration.max_tokens == SlotsConfig().default_max_tokens


def test_where_the_pool_is_unknown_nothing_is_written_into_a_request() -> None:
    config = PathConfig(replicas=(replica_config("a1"),), slots=SlotsConfig(enabled=False))
    decision = Events(Path(config, 0.0)).offer(prompt_tokens=100)
    assert isinstance(decision, Admit)
    assert decision.alteration is None


def test_a_reservation_that_is_larger_than_every_pool_is_refused_for_good() -> None:
    events = Events(Path(PathConfig(replicas=(replica_config("a1", kv_tokens=1024),)), 0.0))
    decision = events.offer(prompt_tokens=600, max_tokens=600)
    assert isinstance(decision, Refuse)
    assert (decision.reason, decision.retry_after_s) == (Reason.POOL_TOO_SMALL, None)
    assert isinstance(events.offer(prompt_tokens=600, max_tokens=424), Admit)


def test_the_default_bound_is_at_least_one_token() -> None:
    with pytest.raises(ValueError, match="default_max_tokens"):
        SlotsConfig(default_max_tokens=0)


@pytest.mark.parametrize("quantile", [0.0, 1.0, -0.5, 1.5])
def test_a_quantile_lies_between_none_and_all(quantile: float) -> None:
    with pytest.raises(ValueError, match=r"slots\.quantile must lie between 0 and 1"):
        SlotsConfig(quantile=quantile)
