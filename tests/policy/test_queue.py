"""The waiting requests: bounds, order, shares between classes, and that no ticket is lost or given twice."""

from __future__ import annotations

from dataclasses import replace

from tidegate.policy.classes import BATCH, INTERACTIVE, LONG, ClassConfig, ClassesConfig
from tidegate.policy.line import Ticket
from tidegate.policy.queue import Queue, QueueConfig
from tidegate.policy.request import Request

CLASSES = ClassesConfig()


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
    queue = Queue(QueueConfig(max_overtakes=2), CLASSES)
    giant = ticket(1, LONG)
    queue.enter(giant, 0.0)
    queue.enter(ticket(2), 0.0)
    giant.overtaken = 1
    assert len(queue.heads()) == 2
    giant.overtaken = 2
    assert queue.heads() == [giant]


def test_without_overtakes_only_the_first_in_order_may_go() -> None:
    queue = Queue(QueueConfig(max_overtakes=0), CLASSES)
    queue.enter(ticket(1, LONG), 0.0)
    queue.enter(ticket(2), 0.0)
    assert [each.id for each in queue.heads()] == [2]


def test_a_class_that_returns_to_an_empty_queue_has_no_credit_for_its_absence() -> None:
    queue = Queue(QueueConfig(), CLASSES)
    for number in range(1, 101):
        queue.enter(ticket(number, tokens=1000), 0.0)
        serve(queue)
    for number in range(200, 300):
        queue.enter(ticket(number, BATCH), 0.0)
    for number in range(300, 400):
        queue.enter(ticket(number, INTERACTIVE), 0.0)
    first = [serve(queue).service_class for _ in range(17)]
    assert first.count(BATCH) == 1


def test_of_equals_the_heavier_class_goes_first() -> None:
    queue = Queue(QueueConfig(), CLASSES)
    for number, name in enumerate((BATCH, LONG, INTERACTIVE), start=1):
        queue.enter(ticket(number, name), 0.0)
    assert [each.service_class for each in queue.heads()] == [INTERACTIVE, LONG, BATCH]


def test_tickets_of_a_class_that_is_gone_stand_in_the_other_where_their_own_stood() -> None:
    classes = replace(CLASSES, classes=CLASSES.classes | {"vip": ClassConfig(weight=4.0)})
    queue = Queue(QueueConfig(), classes)
    for number in range(1, 21):
        queue.enter(ticket(number, "vip"), 0.0)
    for number in range(21, 41):
        queue.enter(ticket(number, LONG), 0.0)
    for _ in range(10):
        serve(queue)
    queue.reclass(queue.config, CLASSES, 0.0)
    served = [serve(queue).service_class for _ in range(5)]
    assert served.count(LONG) == 1
