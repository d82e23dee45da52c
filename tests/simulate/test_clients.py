from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.simulate.scripted_front import ScriptedFront, demand, visit_of
from tidegate.simulate.clients import Clients
from tidegate.simulate.clock import Clock
from tidegate.simulate.visit import Call, Demand, Ending, Visit


def ignore(call: Call, number: int, clients: Clients, clock: Clock) -> None:
    """Nobody answers."""


def test_a_client_leaves_after_its_patience_and_calls_again_once() -> None:
    visit, front = visit_of(ignore)
    assert front.opened == [0.0, 8.0]
    assert front.left == [7.0, 15.0]
    assert (visit.ending, visit.ended_at, visit.calls) == (Ending.TIMEOUT, 15.0, 2)


def test_a_client_that_has_a_token_stays_to_the_end() -> None:
    def slow_answer(call: Call, number: int, clients: Clients, clock: Clock) -> None:
        clock.schedule(6.9, clients.first_token, call)
        clock.schedule(50.0, clients.answered, call, 10)

    visit, front = visit_of(slow_answer)
    assert front.left == []
    assert (visit.ending, visit.ended_at, visit.first_token_at) == (Ending.ANSWERED, 50.0, 6.9)


def test_an_answer_to_the_second_call_counts_from_the_first() -> None:
    def second_time_lucky(call: Call, number: int, clients: Clients, clock: Clock) -> None:
        if number == 2:
            clock.schedule(clock.now + 1.0, clients.first_token, call)
            clock.schedule(clock.now + 2.0, clients.answered, call, 10)

    visit, _ = visit_of(second_time_lucky)
    assert visit.is_answered
    assert (visit.calls, visit.demand.at, visit.first_token_at, visit.ended_at) == (2, 0.0, 9.0, 10.0)


@pytest.mark.parametrize(
    ("retry_after_s", "second_call_at"),
    [(0.0, 1.0), (0.4, 1.0), (5.0, 5.0), (60.0, 60.0), (61.0, 1.0)],
)
def test_a_refused_client_obeys_retry_after_as_stock_sdks_do(retry_after_s: float, second_call_at: float) -> None:
    visit, front = visit_of(lambda call, number, clients, clock: clients.refused(call, retry_after_s))
    assert front.opened == [0.0, second_call_at]
    assert visit.ending is Ending.REFUSED


def test_a_heedless_client_ignores_retry_after() -> None:
    _, front = visit_of(lambda call, number, clients, clock: clients.refused(call, 5.0), heeds_retry_after=False)
    assert front.opened == [0.0, 1.0]


def test_a_client_that_is_told_not_to_come_back_gives_up() -> None:
    visit, front = visit_of(lambda call, number, clients, clock: clients.refused(call, None))
    assert (front.opened, visit.ending) == ([0.0], Ending.REFUSED)


def test_a_failure_before_the_first_token_is_called_again_and_one_after_it_is_not() -> None:
    visit, front = visit_of(lambda call, number, clients, clock: clients.failed(call, Ending.ENGINE))
    assert (front.opened, visit.ending) == ([0.0, 1.0], Ending.ENGINE)

    def break_off(call: Call, number: int, clients: Clients, clock: Clock) -> None:
        clients.first_token(call)
        clients.failed(call, Ending.ENGINE)

    visit, front = visit_of(break_off)
    assert (front.opened, visit.ending) == ([0.0], Ending.ENGINE)


def test_a_client_with_one_try_calls_once() -> None:
    visit, front = visit_of(ignore, tries=1)
    assert (front.opened, visit.ending, visit.ended_at) == ([0.0], Ending.TIMEOUT, 7.0)


def test_each_call_has_bits_of_its_own() -> None:
    draws: list[int] = []
    visit_of(lambda call, number, clients, clock: draws.append(call.draw))
    assert len(set(draws)) == 2


def test_whoever_has_waited_in_vain_may_be_gone_for_good() -> None:
    clock = Clock()
    clients = Clients(clock, tries=2, returns_after_timeout=False)
    clients.start(ScriptedFront(lambda _call, _number: None), [demand()])
    clock.run()
    assert (clients.visits[0].ending, clients.visits[0].ended_at) == (Ending.TIMEOUT, 7.0)


def test_a_user_of_a_closed_loop_calls_again_when_the_last_request_has_ended() -> None:
    clock = Clock()
    clients = Clients(clock, tries=1)

    def answer_in_a_second(call: Call, _number: int) -> None:
        clock.schedule(clock.now + 1.0, clients.answered, call, 10)

    front = ScriptedFront(answer_in_a_second)
    clients.start(front, [replace(demand(), index=index) for index in range(5)], users=2)
    clock.run()
    assert front.opened == [0.0, 0.0, 1.0, 1.0, 2.0]
    assert [visit.demand.at for visit in clients.visits] == front.opened
    assert clients.live == 0


def chained(*, deadline_s: float | None) -> Demand:
    last = replace(demand(), index=1, chain=0, at=0.5)
    return replace(demand(), chain=0, then=last, worthless_after_s=deadline_s)


def play_chain(script: Callable[[Call, int, Clients, Clock], None], first: Demand) -> tuple[list[Visit], ScriptedFront]:
    clock = Clock()
    clients = Clients(clock, 2)
    front = ScriptedFront(lambda call, number: script(call, number, clients, clock))
    clients.start(front, [first])
    clock.run()
    assert clients.live == 0
    return clients.visits, front


def test_the_next_call_of_a_chain_begins_when_the_one_before_was_answered_and_has_what_is_left_of_its_time() -> None:
    def answer(call: Call, _number: int, clients: Clients, clock: Clock) -> None:
        clock.schedule(clock.now + 1.0, clients.answered, call, 10)

    visits, front = play_chain(answer, chained(deadline_s=4.0))
    assert front.opened == [0.0, 1.5]
    assert visits[1].demand.worthless_after_s == 2.5
    assert play_chain(answer, chained(deadline_s=None))[1].opened == [0.0, 1.5]


def test_a_chain_ends_with_a_call_that_failed_or_when_its_time_is_up() -> None:
    def refuse(call: Call, _number: int, clients: Clients, _clock: Clock) -> None:
        clients.refused(call, None)

    def answer_late(call: Call, _number: int, clients: Clients, clock: Clock) -> None:
        clock.schedule(clock.now + 1.0, clients.answered, call, 10)

    assert len(play_chain(refuse, chained(deadline_s=4.0))[0]) == 1
    assert len(play_chain(answer_late, chained(deadline_s=1.5))[0]) == 1


def test_the_user_of_a_chain_is_gone_at_its_deadline_also_from_an_answer_that_has_begun() -> None:
    def begin(call: Call, _number: int, clients: Clients, _clock: Clock) -> None:
        clients.first_token(call)

    visits, front = play_chain(begin, chained(deadline_s=3.0))
    assert len(front.left) == 1
    assert (visits[0].ending, visits[0].ended_at) == (Ending.TIMEOUT, 3.0)
