"""Who leaves a queue for the lighter model, and when that begins and ends."""

from __future__ import annotations

from dataclasses import replace

from tidegate.policy.ladder import LadderConfig
from tidegate.policy.relief import FEW, Relief
from tidegate.policy.request import Request
from tidegate.policy.ticket import Ticket

CONFIG = LadderConfig(light_model="l", relieve_after_s=0.5, relieve_until_s=0.3)


def ticket(number: int, prompt_tokens: int) -> Ticket:
    return Ticket(number, Request(number, "a", 0.0, 0, prompt_tokens=prompt_tokens), "interactive", 9.0, 9.0, 0.0)


def test_it_begins_above_one_threshold_and_ends_below_another() -> None:
    relief = Relief(CONFIG)
    assert [relief.wants(wait_s) for wait_s in (0.4, 0.5, 0.6, 0.4, 0.31, 0.3, 0.4)] == [
        False,
        False,
        True,
        True,
        True,
        False,
        False,
    ]


def test_without_a_known_wait_or_a_threshold_nobody_goes() -> None:
    relief = Relief(CONFIG)
    assert relief.wants(0.6)
    assert not relief.wants(None)
    relief.config = replace(CONFIG, relieve_after_s=None)
    assert not relief.wants(60.0)


def test_the_longest_goes_first_and_of_equals_the_one_that_came_first() -> None:
    relief = Relief(CONFIG)
    tickets = [ticket(1, 10), ticket(2, 30), ticket(3, 30), ticket(4, 20)]
    for each in tickets:
        relief.note(each)
    order = []
    while (longest := relief.longest()) is not None:
        order.append(longest.id)
        longest.gone = True
    assert order == [2, 3, 4, 1]


def test_a_prompt_that_was_counted_anew_has_its_new_place() -> None:
    relief = Relief(CONFIG)
    first, second = ticket(1, 30), ticket(2, 20)
    relief.note(first)
    relief.note(second)
    first.request.prompt_tokens = 10
    relief.note(first)
    assert relief.longest() is second
    relief.pass_over()
    assert relief.longest() is first


def test_what_has_left_is_forgotten() -> None:
    relief = Relief(CONFIG)
    tickets = [ticket(number, number) for number in range(1, 200)]
    for each in tickets[:-1]:
        relief.note(each)
        each.gone = True
    relief.note(tickets[-1])
    assert len(relief._longest) <= FEW
    assert relief.longest() is tickets[-1]
