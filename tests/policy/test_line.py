"""One class's line: earliest deadline first, exact totals, nothing lost by lazy deletion, and appointments."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tidegate.policy.line import MOST_BOOKED_S, Line
from tidegate.policy.request import Request
from tidegate.policy.tenants import TenantsConfig
from tidegate.policy.ticket import Ticket


def ticket(number: int, due_at: float, tokens: int = 100) -> Ticket:
    request = Request(number, "a", 0.0, 0, prompt_tokens=tokens, body_bytes=7 * tokens)
    return Ticket(number, request, "interactive", due_at, 100.0, 0.0)


class LineMachine(RuleBasedStateMachine):
    """Against a plain list of the tickets that are in."""

    def __init__(self) -> None:
        super().__init__()
        self.line = Line(1.0, TenantsConfig())
        self.inside: list[Ticket] = []
        self.count = 0
        self.now = 0.0

    @rule(due=st.lists(st.integers(0, 50), min_size=1, max_size=100), tokens=st.integers(0, 100))
    def enter(self, due: list[int], tokens: int) -> None:
        for each in due:
            self.count += 1
            self.inside.append(ticket(self.count, float(each), tokens))
            self.line.enter(self.inside[-1], self.now)

    @precondition(lambda self: self.inside)
    @rule(picks=st.lists(st.integers(0, 1000), min_size=1, max_size=100))
    def leave(self, picks: list[int]) -> None:
        for pick in picks[: len(self.inside)]:
            self.line.leave(self.inside.pop(pick % len(self.inside)), self.now)

    @precondition(lambda self: self.inside)
    @rule()
    def dispatch_the_head(self) -> None:
        head = self.line.head()
        assert head is min(self.inside, key=lambda each: (each.due_at, each.id))
        self.inside.remove(head)
        self.line.dispatched(head, self.now)

    @rule(due_at=st.integers(-1, 60))
    def ask_who_is_before(self, due_at: int) -> None:
        before = sum(each.request.prompt_tokens for each in self.inside if each.due_at <= due_at)
        assert self.line.tokens_before("default", float(due_at), 1) == before

    @rule(seconds=st.floats(0, 10))
    def pass_time(self, seconds: float) -> None:
        self.now += seconds

    @invariant()
    def totals_are_exact(self) -> None:
        assert self.line.requests == len(self.inside)
        assert self.line.tokens == sum(each.request.prompt_tokens for each in self.inside)
        assert self.line.bytes == sum(each.request.body_bytes for each in self.inside)

    @invariant()
    def no_ticket_is_lost_or_given_twice(self) -> None:
        assert self.line.tickets() == sorted(self.inside, key=lambda each: (each.due_at, each.id))

    @invariant()
    def the_dead_do_not_pile_up(self) -> None:
        assert sum(len(flow._heap) for flow in self.line._flows.values()) - len(self.inside) <= max(
            64, len(self.inside)
        )


LineMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
TestLine = LineMachine.TestCase


def test_an_empty_line_has_no_head() -> None:
    line = Line(1.0, TenantsConfig())
    assert line.head() is None
    gone = ticket(1, 5.0)
    line.enter(gone, 0.0)
    line.leave(gone, 0.0)
    assert line.head() is None


def test_work_is_dispatched_tokens_over_weight_and_at_least_one_token() -> None:
    line = Line(4.0, TenantsConfig())
    for number, tokens in enumerate((100, 0), start=1):
        each = ticket(number, 5.0, tokens)
        line.enter(each, 0.0)
        line.dispatched(each, 0.0)
    assert line.work == 25.25


def test_the_refused_get_appointments_one_behind_the_other() -> None:
    line = Line(1.0, TenantsConfig())
    assert [line.book(2.0, 0.5, 10.0) for _ in range(4)] == [2.0, 2.5, 3.0, 3.5]
    assert line.book(2.0, 0.5, 11.0) == 3.0


@given(st.lists(st.floats(0.0, 100.0), max_size=50))
def test_a_flood_of_the_refused_does_not_outlast_itself(services_s: list[float]) -> None:
    line = Line(1.0, TenantsConfig())
    for service_s in services_s:
        assert 1.0 <= line.book(1.0, service_s, 0.0) <= MOST_BOOKED_S
    assert line.book(1.0, 0.0, MOST_BOOKED_S) == 1.0


def test_cancelled_tickets_that_never_surface_are_swept_out() -> None:
    line = Line(1.0, TenantsConfig())
    tickets = [ticket(number, float(number)) for number in range(200)]
    for each in tickets:
        line.enter(each, 0.0)
    for each in tickets[50:]:
        line.leave(each, 0.0)
    assert line.requests == 50
    assert len(line._flows["default"]._heap) <= 100
    assert line.head() is tickets[0]
    assert line.tickets() == tickets[:50]
