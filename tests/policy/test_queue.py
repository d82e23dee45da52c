"""The waiting requests: bounds, order, shares between classes, and that no ticket is lost or given twice."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tidegate.policy.classes import BATCH, INTERACTIVE, LONG, ClassConfig, ClassesConfig
from tidegate.policy.decisions import Reason
from tidegate.policy.queue import Queue, QueueConfig
from tidegate.policy.request import Request
from tidegate.policy.tenants import TenantsConfig
from tidegate.policy.ticket import Ticket

DEFAULT = ClassesConfig()
CLASSES = replace(
    DEFAULT, classes=DEFAULT.classes | {BATCH: ClassConfig(weight=0.25, max_wait_s=60.0, queue_share=0.5)}
)
"""The default ones, but none yields."""


def ticket(
    number: int, service_class: str = INTERACTIVE, *, due_at: float = 10.0, tokens: int = 100, expires_at: float = 50.0
) -> Ticket:
    request = Request(number, "a", 0.0, 0, prompt_tokens=tokens, body_bytes=10 * tokens)
    return Ticket(number, request, service_class, due_at, expires_at, 0.0)


def serve(queue: Queue, now: float = 0.0) -> Ticket:
    """Dispatch whoever is next."""
    head = queue.heads()[0]
    queue.dispatch(head, now)
    return head


def test_a_ticket_is_overtaken_as_often_as_the_bound_says_and_then_stands_alone() -> None:
    queue = Queue(QueueConfig(max_overtakes=2), CLASSES, TenantsConfig())
    giant = ticket(1, LONG)
    queue.enter(giant, 0.0)
    queue.enter(ticket(2), 0.0)
    giant.overtaken = 1
    assert len(queue.heads()) == 2
    giant.overtaken = 2
    assert queue.heads() == [giant]


def test_without_overtakes_only_the_first_in_order_may_go() -> None:
    queue = Queue(QueueConfig(max_overtakes=0), CLASSES, TenantsConfig())
    queue.enter(ticket(1, LONG), 0.0)
    queue.enter(ticket(2), 0.0)
    assert [each.id for each in queue.heads()] == [2]


def test_a_class_that_returns_to_an_empty_queue_has_no_credit_for_its_absence() -> None:
    queue = Queue(QueueConfig(), CLASSES, TenantsConfig())
    for number in range(1, 101):
        queue.enter(ticket(number, tokens=1000), 0.0)
        serve(queue)
    for number in range(200, 300):
        queue.enter(ticket(number, BATCH), 0.0)
    for number in range(300, 400):
        queue.enter(ticket(number, INTERACTIVE), 0.0)
    first = [serve(queue).service_class for _ in range(17)]
    assert first.count(BATCH) == 1


def test_a_class_that_yields_has_its_turn_only_while_no_other_waits() -> None:
    queue = Queue(QueueConfig(), DEFAULT, TenantsConfig())
    for number, name in enumerate((BATCH, LONG, INTERACTIVE, BATCH), start=1):
        queue.enter(ticket(number, name), 0.0)
    assert [serve(queue).id for _ in range(4)] == [3, 2, 1, 4]


def test_of_equals_the_heavier_class_goes_first() -> None:
    queue = Queue(QueueConfig(), CLASSES, TenantsConfig())
    for number, name in enumerate((BATCH, LONG, INTERACTIVE), start=1):
        queue.enter(ticket(number, name), 0.0)
    assert [each.service_class for each in queue.heads()] == [INTERACTIVE, LONG, BATCH]


def test_tickets_of_a_class_that_is_gone_stand_in_the_other_where_their_own_stood() -> None:
    classes = replace(CLASSES, classes=CLASSES.classes | {"vip": ClassConfig(weight=4.0)})
    queue = Queue(QueueConfig(), classes, TenantsConfig())
    for number in range(1, 21):
        queue.enter(ticket(number, "vip"), 0.0)
    for number in range(21, 41):
        queue.enter(ticket(number, LONG), 0.0)
    for _ in range(10):
        serve(queue)
    queue.reclass(queue.config, CLASSES, TenantsConfig(), 0.0)
    served = [serve(queue).service_class for _ in range(5)]
    assert served.count(LONG) == 1


def test_all_classes_together_fill_the_queue_and_none_more_than_its_share() -> None:
    queue = Queue(QueueConfig(max_requests=10), CLASSES, TenantsConfig())
    for number in range(5):
        assert queue.has_room(Request(number, "a", 0.0, 0), LONG) is None
        queue.enter(ticket(number, LONG), 0.0)
    assert queue.has_room(Request(5, "a", 0.0, 0), LONG) is Reason.QUEUE_FULL
    for number in range(5, 10):
        assert queue.has_room(Request(number, "a", 0.0, 0), INTERACTIVE) is None
        queue.enter(ticket(number, INTERACTIVE), 0.0)
    assert queue.has_room(Request(10, "a", 0.0, 0), INTERACTIVE) is Reason.QUEUE_FULL


@given(
    st.lists(
        st.tuples(st.sampled_from([INTERACTIVE, LONG, BATCH]), st.integers(0, 60), st.integers(0, 60)), max_size=60
    )
)
def test_no_bound_is_passed_and_what_fits_exactly_is_let_in(offers: list[tuple[str, int, int]]) -> None:
    config = QueueConfig(max_requests=10, max_tokens=100, max_bytes=120)
    queue = Queue(config, CLASSES, TenantsConfig())
    inside: list[tuple[str, int, int]] = []
    for number, (name, tokens, size) in enumerate(offers):
        share = CLASSES.classes[name].queue_share
        own = [each for each in inside if each[0] == name]
        fits = {
            Reason.QUEUE_FULL: len(inside) < 10 and len(own) < 10 * share,
            Reason.QUEUE_TOKENS: sum(each[1] for each in inside) + tokens <= 100
            and sum(each[1] for each in own) + tokens <= 100 * share,
            Reason.QUEUE_BYTES: sum(each[2] for each in inside) + size <= 120
            and sum(each[2] for each in own) + size <= 120 * share,
        }
        request = Request(number, "a", 0.0, 0, prompt_tokens=tokens, body_bytes=size)
        assert queue.has_room(request, name) == next((why for why, room in fits.items() if not room), None)
        if all(fits.values()):
            queue.enter(Ticket(number, request, name, 1.0, 1.0, 0.0), 0.0)
            inside.append((name, tokens, size))


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(1, 500)), min_size=1, max_size=40))
def test_inside_a_class_the_earliest_deadline_goes_first_and_of_equals_the_first_to_come(
    due: list[tuple[int, int]],
) -> None:
    queue = Queue(QueueConfig(), CLASSES, TenantsConfig())
    for number, (due_at, tokens) in enumerate(due):
        queue.enter(ticket(number, due_at=float(due_at), tokens=tokens), 0.0)
    served = [serve(queue) for _ in due]
    assert [(each.due_at, each.id) for each in served] == sorted((each.due_at, each.id) for each in served)


@given(st.lists(st.tuples(st.sampled_from([INTERACTIVE, LONG, BATCH]), st.integers(1, 400)), min_size=30, max_size=150))
def test_classes_that_wait_share_the_dispatched_tokens_by_weight_within_one_ticket_each(
    offers: list[tuple[str, int]],
) -> None:
    queue = Queue(QueueConfig(), CLASSES, TenantsConfig())
    for number, (name, tokens) in enumerate(offers):
        queue.enter(ticket(number, name, tokens=tokens), 0.0)
    served = dict.fromkeys(CLASSES.classes, 0.0)
    while queue.requests:
        head = serve(queue)
        served[head.service_class] += head.request.prompt_tokens / CLASSES.classes[head.service_class].weight
        busy = [name for name, line in queue.lines.items() if line.requests]
        largest = {name: 400 / CLASSES.classes[name].weight for name in busy}
        for one in busy:
            for other in busy:
                assert served[one] - served[other] <= largest[one]


def test_a_class_that_comes_back_to_a_busy_queue_stands_with_the_least_of_the_busy() -> None:
    queue = Queue(QueueConfig(), CLASSES, TenantsConfig())
    for number in range(1, 101):
        queue.enter(ticket(number, INTERACTIVE), 0.0)
    for _ in range(80):
        serve(queue)
    for number in range(200, 300):
        queue.enter(ticket(number, BATCH), 0.0)
    first = [serve(queue).service_class for _ in range(18)]
    assert 1 <= first.count(BATCH) <= 2


@given(st.integers(0, 40), st.lists(st.integers(1, 500), min_size=60, max_size=60))
def test_a_giant_that_fits_nowhere_is_passed_at_most_so_often(most: int, tokens: list[int]) -> None:
    queue = Queue(QueueConfig(max_overtakes=most), CLASSES, TenantsConfig())
    giant = ticket(1000, LONG, tokens=100_000)
    queue.enter(giant, 0.0)
    for number, each in enumerate(tokens):
        queue.enter(ticket(number, tokens=each), 0.0)
    passed = 0
    while (others := [head for head in queue.heads() if head is not giant]) and queue.heads()[0] is not giant:
        queue.dispatch(others[0], 0.0)
    while others := [head for head in queue.heads() if head is not giant]:
        queue.dispatch(others[0], 0.0)
        giant.overtaken += 1
        passed += 1
    assert passed <= most


class QueueMachine(RuleBasedStateMachine):
    """Enter, dispatch, leave, expire, reload in any order: every ticket comes out once, by one door."""

    def __init__(self) -> None:
        super().__init__()
        self.queue = Queue(QueueConfig(), CLASSES, TenantsConfig())
        self.inside: dict[int, Ticket] = {}
        self.count = 0
        self.now = 0.0

    @rule(
        names=st.lists(st.sampled_from([*CLASSES.classes]), min_size=1, max_size=20),
        due_s=st.integers(0, 30),
        stay_s=st.floats(0.1, 30.0),
    )
    def enter(self, names: list[str], due_s: int, stay_s: float) -> None:
        for name in names:
            self.count += 1
            service_class = name if name in self.queue.lines else INTERACTIVE
            new = ticket(self.count, service_class, due_at=self.now + due_s, expires_at=self.now + stay_s)
            self.queue.enter(new, self.now)
            self.inside[new.id] = new

    @precondition(lambda self: self.inside)
    @rule(count=st.integers(1, 30))
    def dispatch(self, count: int) -> None:
        for _ in range(min(count, len(self.inside))):
            del self.inside[serve(self.queue, self.now).id]

    @precondition(lambda self: self.inside)
    @rule(index=st.integers(0, 1000))
    def leave(self, index: int) -> None:
        gone = self.inside.pop([*self.inside][index % len(self.inside)])
        self.queue.leave(gone, self.now)

    @rule(seconds=st.floats(0.0, 10.0))
    def expire(self, seconds: float) -> None:
        self.now += seconds
        due = {each.id for each in self.inside.values() if each.expires_at <= self.now}
        out = self.queue.expired(self.now)
        assert [each.id for each in out] == sorted(due, key=lambda number: (self.inside[number].expires_at, number))
        for each in out:
            del self.inside[each.id]

    @rule(keep=st.lists(st.sampled_from([BATCH, "other"]), unique=True), weight=st.floats(0.1, 10.0))
    def reload(self, keep: list[str], weight: float) -> None:
        names = [INTERACTIVE, LONG, *keep]
        classes = ClassesConfig(classes={name: ClassConfig(weight=weight) for name in names})
        self.queue.reclass(QueueConfig(), classes, TenantsConfig(), self.now)

    @rule(tokens=st.integers(0, 1000), index=st.integers(0, 1000))
    @precondition(lambda self: self.inside)
    def recount(self, tokens: int, index: int) -> None:
        chosen = [*self.inside.values()][index % len(self.inside)]
        self.queue.recount(chosen, tokens)
        chosen.request.prompt_tokens = tokens

    @invariant()
    def the_totals_agree(self) -> None:
        view = self.queue.view()
        assert view["requests"] == self.queue.requests == len(self.inside)
        assert view["tokens"] == sum(each.request.prompt_tokens for each in self.inside.values())
        assert view["bytes"] == sum(each.request.body_bytes for each in self.inside.values())
        stand = [each for line in self.queue.lines.values() for each in line.tickets()]
        assert sorted(each.id for each in stand) == sorted(self.inside)

    @invariant()
    def somebody_may_always_go(self) -> None:
        assert bool(self.queue.heads()) == bool(self.inside)

    @invariant()
    def the_next_expiry_is_that_of_somebody_inside(self) -> None:
        expected = min((each.expires_at for each in self.inside.values()), default=None)
        assert self.queue.next_expiry() == expected


QueueMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
TestQueue = QueueMachine.TestCase


@pytest.mark.parametrize("wrong", [{"max_requests": 0}, {"max_tokens": 0}, {"max_bytes": 0}, {"max_overtakes": -1}])
def test_impossible_bounds_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="bound of the queue"):
        QueueConfig(**wrong)


def test_a_line_goes_no_faster_than_its_class_is_owed_while_others_wait() -> None:
    """Alone it had everything; a class of four times its weight comes to stand beside it."""
    queue = Queue(QueueConfig(), CLASSES, TenantsConfig())
    for number in range(1, 101):
        queue.enter(ticket(number, LONG, tokens=100), 0.0)
    assert queue.owed_tokens_per_s(LONG, 0.0) is None
    for step in range(1, 41):
        serve(queue, step * 0.1)
    alone = queue.owed_tokens_per_s(LONG, 4.0) or 0.0
    assert alone == pytest.approx(1000, rel=0.15)
    for number in range(101, 181):
        queue.enter(ticket(number, INTERACTIVE, tokens=100), 4.0)
    assert queue.owed_tokens_per_s(LONG, 4.0) == alone, "nothing is known of the others yet"
    for step in range(41, 91):
        serve(queue, step * 0.1)
    theirs = queue.owed_tokens_per_s(INTERACTIVE, 9.0) or 0.0
    own = queue.lines[LONG].tokens_per_s(9.0) or 0.0
    assert queue.owed_tokens_per_s(LONG, 9.0) == pytest.approx(0.2 * (own + theirs))
    assert theirs > own > 0.2 * (own + theirs)
