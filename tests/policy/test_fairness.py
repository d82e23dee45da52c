"""Tenants in one line: nobody who waits falls further behind than one request, whoever comes, goes or floods."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tidegate.policy.flow import DUE_STEP_S, SCANNED, Flow
from tidegate.policy.line import OUTPUT_WEIGHT, Charge, Line
from tidegate.policy.request import NEVER, Request
from tidegate.policy.tenants import TenantConfig, TenantsConfig
from tidegate.policy.ticket import Ticket

WEIGHTS = {"a": 1.0, "b": 1.0, "c": 2.0, "d": 4.0}
TENANTS = TenantsConfig(named={name: TenantConfig(weight=weight) for name, weight in WEIGHTS.items()})
MOST_TOKENS = 1000


def ticket(number: int, tenant: str, tokens: int = 100, due_at: float = 5.0) -> Ticket:
    return Ticket(number, Request(number, "m", 0.0, 0, tokens, tenant=tenant), "interactive", due_at, 100.0, 0.0)


def line_of(*tenants: str, each: int = 50, tokens: int = 100) -> Line:
    line, number = Line(1.0, TENANTS), 0
    for tenant in tenants:
        for _ in range(each):
            number += 1
            line.enter(ticket(number, tenant, tokens), 0.0)
    return line


def serve(line: Line, output_tokens: float = 0.0) -> Charge:
    head = line.head()
    assert head is not None
    return line.dispatched(head, 0.0, output_tokens)


def test_tenants_that_wait_take_turns_by_weight_however_many_each_has() -> None:
    line = line_of("a", "c", "d", each=100)
    served = [serve(line).flow.tenant for _ in range(70)]
    assert [served.count(name) for name in "acd"] == [10, 20, 40]


def test_a_flood_of_one_tenant_does_not_stand_before_the_request_of_another() -> None:
    line = line_of("a", each=1000)
    for _ in range(10):
        serve(line)
    line.enter(ticket(5000, "b"), 0.0)
    assert "b" in [serve(line).flow.tenant for _ in range(2)]


def test_who_comes_back_has_no_credit_for_its_absence() -> None:
    line = line_of("a", each=1000)
    line.enter(ticket(5000, "b"), 0.0)
    for _ in range(500):
        serve(line)
    for number in range(6000, 6100):
        line.enter(ticket(number, "b"), 0.0)
    served = [serve(line).flow.tenant for _ in range(20)]
    assert 9 <= served.count("a") <= 11


def test_who_leaves_ahead_of_the_others_comes_back_ahead() -> None:
    line = line_of("a", "b", each=20)
    giant = ticket(900, "c", 100_000)
    line.enter(giant, 0.0)
    while line._flows.get("c") is not None and line._flows["c"].requests:
        serve(line)
    line.enter(ticket(901, "c"), 0.0)
    assert "c" not in [serve(line).flow.tenant for _ in range(20)]


def test_what_an_answer_cost_is_corrected_at_its_end() -> None:
    line = line_of("a", "b")
    charge = serve(line, 50.0)
    flow = charge.flow
    assert flow.served == 100 + OUTPUT_WEIGHT * 50
    charge.correct(80, served=True)
    assert flow.served == 100 + OUTPUT_WEIGHT * 80
    other = serve(line, 50.0)
    other.correct(0, served=False)
    assert other.flow.served == 0.0
    assert [serve(line).flow.tenant for _ in range(2)] == [other.flow.tenant] * 2, "the others had so much more"


def test_a_correction_after_everybody_has_gone_changes_nothing() -> None:
    line = line_of("a", each=1)
    charge = serve(line)
    line.enter(ticket(2, "a"), 0.0)
    charge.correct(1000, served=True)
    assert line._flows["a"].served == 0.0


def test_of_the_others_only_what_their_weights_give_them_stands_before_a_newcomer() -> None:
    line = line_of("a", each=100)
    assert line.tokens_before("b", NEVER, 100) == 100
    assert line.tokens_before("d", NEVER, 100) == 25
    assert line.tokens_before("a", NEVER, 100) == 10_000
    line.enter(ticket(500, "b"), 0.0)
    assert line.tokens_before("b", NEVER, 100) == 300
    assert line.tokens_before("b", 4.0, 100) == 100
    assert line_of("a", each=1).tokens_before("b", NEVER, 10_000) == 100, "no more than there is"


def test_weights_change_under_those_who_wait() -> None:
    line = line_of("a", "b", each=100)
    line.reweigh(3.0, TenantsConfig(named={"a": TenantConfig(weight=9.0)}))
    assert line.weight == 3.0
    assert line.tokens_before("b", NEVER, 100) == 20_000
    served = [serve(line).flow.tenant for _ in range(50)]
    assert served.count("a") == pytest.approx(45, abs=1)


def test_turns_of_tenants_that_come_and_go_do_not_pile_up() -> None:
    line = line_of("a", each=1)
    for number in range(10, 2000):
        passing = ticket(number, f"t{number % 50}")
        line.enter(passing, 0.0)
        line.leave(passing, 0.0)
    assert len(line._turns) <= 2 * (len(line._flows) + 64)
    assert len(line._flows) <= 51
    assert line.head() is not None


class Fairness(RuleBasedStateMachine):
    """Against plain lists; the bound is VTC's: two that wait all the while differ by one request of each."""

    def __init__(self) -> None:
        super().__init__()
        self.line = Line(1.0, TENANTS)
        self.inside: list[Ticket] = []
        self.count = 0
        self.since: dict[str, float] = {}
        """What each tenant has had since it began to wait."""

    def _waiting(self) -> list[str]:
        return sorted({each.request.tenant for each in self.inside})

    def _begin_anew(self) -> None:
        self.since = dict.fromkeys(self._waiting(), 0.0)

    @rule(tenant=st.sampled_from("abcd"), tokens=st.lists(st.integers(1, MOST_TOKENS), min_size=1, max_size=20))
    def come(self, tenant: str, tokens: list[int]) -> None:
        was = self._waiting()
        for each in tokens:
            self.count += 1
            self.inside.append(ticket(self.count, tenant, each))
            self.line.enter(self.inside[-1], 0.0)
        if tenant not in was:
            self._begin_anew()

    @precondition(lambda self: self.inside)
    @rule(times=st.integers(1, 10))
    def serve(self, times: int) -> None:
        for _ in range(min(times, len(self.inside))):
            head = self.line.head()
            assert head is not None
            tenant = head.request.tenant
            first = min((t for t in self.inside if t.request.tenant == tenant), key=lambda t: (t.due_at, t.id))
            assert head is first
            self.inside.remove(head)
            self.line.dispatched(head, 0.0)
            self.since[tenant] += head.request.prompt_tokens / WEIGHTS[tenant]
            if tenant not in self._waiting():
                self._begin_anew()

    @precondition(lambda self: self.inside)
    @rule(index=st.integers(0, 1000))
    def give_up(self, index: int) -> None:
        gone = self.inside.pop(index % len(self.inside))
        self.line.leave(gone, 0.0)
        if gone.request.tenant not in self._waiting():
            self._begin_anew()

    @invariant()
    def nobody_falls_behind_by_more_than_a_request_of_each(self) -> None:
        for one in self.since:
            for other in self.since:
                bound = MOST_TOKENS / WEIGHTS[one] + MOST_TOKENS / WEIGHTS[other]
                assert self.since[one] - self.since[other] <= bound

    @invariant()
    def totals_are_exact(self) -> None:
        assert self.line.tokens == sum(each.request.prompt_tokens for each in self.inside)
        weight = sum(WEIGHTS[name] for name in self._waiting())
        assert self.line._busy_weight == pytest.approx(weight)
        assert (self.line.head() is None) == (not self.inside)


Fairness.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
TestFairness = Fairness.TestCase


@given(st.lists(st.tuples(st.floats(0.0, 20.0), st.integers(0, 500)), max_size=200), st.floats(0.0, 20.0))
@settings(max_examples=60, deadline=None)
def test_a_long_flow_knows_what_is_due_before_to_within_a_step(each: list[tuple[float, int]], due_at: float) -> None:
    flow = Flow("a", 1.0)
    for number, (due, tokens) in enumerate(each):
        flow.enter(ticket(number, "a", tokens, due))
    least = sum(tokens for due, tokens in each if due <= due_at)
    most = sum(tokens for due, tokens in each if due < due_at + DUE_STEP_S)
    assert least <= flow.tokens_before(due_at) <= most
    if len(each) <= SCANNED:
        assert flow.tokens_before(due_at) == least
