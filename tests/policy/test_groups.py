"""One budget, several models: what is guaranteed, what is lent, and how it comes back."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tidegate.policy.groups import Group, GroupConfig, GroupsConfig, Pool, PoolConfig


def pool_of(budget: int = 100, /, **groups: tuple[int, int, int]) -> Pool:
    """Groups as name=(floor, cap, reserve)."""
    configs = tuple(
        GroupConfig(name=name, floor_bytes=floor, cap_bytes=cap, reserve_bytes=reserve)
        for name, (floor, cap, reserve) in groups.items()
    )
    return Pool(PoolConfig(name="card", budget_bytes=budget, groups=configs), 0.0)


def test_under_its_floor_a_group_enters_whatever_is_kept_for_others() -> None:
    pool = pool_of(images=(60, 100, 0), text=(40, 100, 40))
    images, text = pool.groups
    assert images.admits(60, 0.0)
    images.take(60)
    assert not images.admits(1, 0.0)
    assert text.admits(40, 0.0)


def test_above_its_floor_it_borrows_what_others_leave_idle_less_their_reserve() -> None:
    pool = pool_of(images=(60, 100, 0), text=(40, 100, 10))
    images, _ = pool.groups
    assert images.admits(90, 0.0)
    assert not images.admits(91, 0.0)
    images.take(90)
    assert (images.borrowed_bytes, pool.lent_bytes, pool.used_bytes) == (30, 30, 90)


def test_what_nobody_is_guaranteed_is_no_loan_from_anybody() -> None:
    pool = pool_of(images=(30, 100, 0), text=(30, 100, 0))
    images, _ = pool.groups
    images.take(60)
    assert (images.borrowed_bytes, pool.lent_bytes) == (30, 0)


def test_the_budget_is_never_passed_though_a_floor_is_not_reached() -> None:
    pool = pool_of(images=(60, 100, 0), text=(40, 100, 0))
    images, text = pool.groups
    images.take(100)
    assert text.is_within_floor(10)
    assert not text.admits(10, 0.0)
    images.give_back(10, 0.0)
    assert text.admits(10, 0.0)


def test_a_group_whose_cap_is_its_floor_is_isolated() -> None:
    images, _ = pool_of(images=(60, 60, 0), text=(40, 40, 0)).groups
    assert images.admits(60, 0.0)
    assert not images.admits(61, 0.0)
    assert images.most_bytes == 60


def test_the_lenders_last_peak_is_kept_for_its_next_burst_and_fades_in_ticks() -> None:
    pool = pool_of(images=(50, 100, 0), text=(50, 100, 0))
    images, text = pool.groups
    text.take(40)
    text.give_back(40, 0.5)
    assert text.kept_bytes == 40
    assert not images.admits(61, 0.9)
    assert pool.wakes_at() == 1.0
    assert images.admits(64, 1.0)
    assert text.kept_bytes == 36
    pool.pass_to(10.5)
    assert text.kept_bytes == pytest.approx(40 / 2.72, abs=2)
    pool.pass_to(100.0)
    assert (text.kept_bytes, pool.wakes_at()) == (0, None)


def test_a_peak_never_fades_below_what_is_used_and_never_keeps_more_than_the_floor() -> None:
    pool = pool_of(images=(50, 100, 0), text=(30, 100, 20))
    _, text = pool.groups
    text.take(60)
    text.give_back(35, 0.0)
    assert (text.peak_bytes, text.kept_bytes) == (60, 30)
    pool.pass_to(1000.0)
    assert (text.peak_bytes, text.kept_bytes) == (25, 30)


def test_a_peak_is_as_old_as_its_end_and_not_as_its_beginning() -> None:
    pool = pool_of(images=(50, 100, 0), text=(50, 100, 0))
    _, text = pool.groups
    text.take(40)
    text.give_back(40, 100.5)
    pool.pass_to(100.9)
    assert text.kept_bytes == 40
    pool.pass_to(101.0)
    assert text.kept_bytes == 36


def test_who_waits_under_its_floor_has_all_of_it_kept() -> None:
    pool = pool_of(images=(50, 100, 0), text=(50, 100, 0))
    images, text = pool.groups
    text.claims = 1
    assert text.kept_bytes == 50
    assert images.admits(50, 0.0)
    assert not images.admits(51, 0.0)


def test_foreign_load_is_used_memory_that_no_permit_holds() -> None:
    pool = pool_of(images=(50, 100, 0), text=(50, 100, 0))
    images, text = pool.groups
    text.note_foreign(70)
    assert (text.used_bytes, text.held_bytes, text.borrowed_bytes) == (70, 0, 20)
    assert not images.admits(40, 0.0)
    assert pool.is_stirred
    text.note_foreign(-70)
    assert images.admits(40, 0.0)


def test_the_largest_request_leaves_the_others_reserves_alone() -> None:
    images, text = pool_of(images=(50, 90, 0), text=(30, 100, 20)).groups
    assert (images.most_bytes, text.most_bytes) == (80, 100)
    assert images.admits(images.most_bytes, 0.0)
    assert text.admits(text.most_bytes, 0.0)


def test_a_view_says_who_holds_what() -> None:
    pool = pool_of(images=(50, 100, 0), text=(50, 100, 0))
    pool.groups[0].take(70)
    assert pool.view() == {"budget_bytes": 100, "used_bytes": 70, "lent_bytes": 20}
    assert pool.groups[0].view() == {
        "pool": "card",
        "held_bytes": 70,
        "foreign_bytes": 0,
        "floor_bytes": 50,
        "cap_bytes": 100,
        "peak_bytes": 70,
        "borrowed_bytes": 20,
        "kept_bytes": 70,
        "waits": False,
    }


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ({"a": (60, 100, 0), "b": (50, 100, 0)}, "guarantees 110 bytes and has 100"),
        ({"a": (60, 50, 0)}, "0 <= floor <= cap <= budget"),
        ({"a": (60, 101, 0)}, "0 <= floor <= cap <= budget"),
        ({"a": (60, 100, -1)}, "reserve >= 0"),
    ],
)
def test_a_pool_that_guarantees_what_it_has_not_is_refused(
    groups: dict[str, tuple[int, int, int]], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        pool_of(100, **groups)


def test_group_names_are_unique_over_all_pools() -> None:
    pool = PoolConfig(name="x", budget_bytes=10, groups=(GroupConfig(name="a", floor_bytes=1, cap_bytes=2),))
    with pytest.raises(ValueError, match="two groups cannot share a name: a, a"):
        GroupsConfig(pools=(pool, pool))
    with pytest.raises(ValueError, match="pool x needs peak_s above 0"):
        replace(pool, peak_s=0.0)


@dataclass(eq=False)
class Holding:
    group: Group
    size: int


class LoanMachine(RuleBasedStateMachine):
    """Random requests of three groups; one request of each may stand waiting for memory under its floor."""

    def __init__(self) -> None:
        super().__init__()
        self.pool = pool_of(images=(40, 100, 5), text=(15, 60, 0), code=(35, 100, 10))
        self.running: list[Holding] = []
        self.waiting: dict[Group, tuple[int, list[Holding]]] = {}
        """By group: what it asks, and what ran in groups above their floor when it was denied."""
        self.now = 0.0

    @rule(index=st.integers(0, 2), size=st.integers(1, 40))
    def ask(self, index: int, size: int) -> None:
        group = self.pool.groups[index]
        if group in self.waiting:
            return
        if group.admits(size, self.now):
            self._enter(group, size)
        elif group.is_within_floor(size):
            group.claims = 1
            self.waiting[group] = (size, [each for each in self.running if each.group.borrowed_bytes])

    def _enter(self, group: Group, size: int) -> None:
        others_wait = any(each is not group for each in self.waiting)
        assert group.is_within_floor(size) or not others_wait, "a loan was made while a floor was owed"
        group.take(size)
        self.running.append(Holding(group, size))

    @precondition(lambda self: self.running)
    @rule(index=st.integers(0, 1000))
    def finish(self, index: int) -> None:
        done = self.running.pop(index % len(self.running))
        done.group.give_back(done.size, self.now)
        for group, (size, _) in [*self.waiting.items()]:
            if group.admits(size, self.now):
                del self.waiting[group]
                group.claims = 0
                self._enter(group, size)

    @rule(seconds=st.floats(0.0, 30.0))
    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        self.pool.pass_to(self.now)

    @invariant()
    def the_budget_and_every_cap_hold(self) -> None:
        assert self.pool.used_bytes == sum(each.size for each in self.running) <= self.pool.budget_bytes
        assert all(group.held_bytes <= group.cap_bytes for group in self.pool.groups)

    @invariant()
    def nobody_waits_under_its_floor_for_anything_but_the_budget_itself(self) -> None:
        for group, (size, _) in self.waiting.items():
            assert not group.is_within_floor(size) or self.pool.used_bytes + size > self.pool.budget_bytes

    @invariant()
    def nobody_waits_longer_than_the_loans_that_ran_when_it_came(self) -> None:
        for size, loans in self.waiting.values():
            assert size > 0
            assert any(loan in self.running for loan in loans)

    @invariant()
    def a_full_pool_is_empty_when_all_have_gone(self) -> None:
        if not self.running:
            assert self.pool.used_bytes == 0
            assert not self.waiting


LoanMachine.TestCase.settings = settings(max_examples=200, stateful_step_count=60, deadline=None)
TestLoanMachine = LoanMachine.TestCase
