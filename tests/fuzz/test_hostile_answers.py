"""Hostile engines: whatever they answer, their clients get something well-formed, and nothing stays."""

from __future__ import annotations

from collections import Counter
from itertools import count

import pytest

from tests.fuzz.attack import Attack, right, said
from tests.fuzz.corpus import ANSWERS
from tests.fuzz.hostile_answers import Step, steps
from tests.fuzz.memory import hold_to_it
from tests.gateway.stand import Engine
from tidegate.wire.requests import Incoming

ANSWERED = 1500
ASKED = (
    right(said("m")),
    right(said("m", stream=True)),
    right(b'{"model":"m","prompt":"a"}', b"/v1/completions"),
    right(b'{"model":"m","input":"a"}', b"/v1/embeddings"),
    b"GET /v1/files HTTP/1.1\r\nhost: a\r\n\r\n",
    b"POST /v1/chat/completions HTTP/1.0\r\ncontent-length: 31\r\n\r\n" + b'{"model":"m","prompt":"aaaaaa"}',
)


def asked(number: int) -> Attack:
    return Attack(f"answer {number}", [ASKED[number % len(ASKED)]], is_due=True)


def test_no_hostile_answer_breaks_anything() -> None:
    numbers = count()

    def script(_: Incoming) -> list[Step]:
        return steps(next(numbers))

    answers = hold_to_it(Engine(script), map(asked, range(ANSWERED)))
    statuses = Counter(answer.status for answer in answers)
    assert statuses[200] > ANSWERED / 10
    assert statuses[502] > ANSWERED / 20


@pytest.mark.parametrize("number", range(len(ASKED)))
@pytest.mark.parametrize("given", ANSWERS)
def test_what_once_broke_something_does_no_more(given: list[Step], number: int) -> None:
    hold_to_it(Engine(lambda _: [*given, "close"]), [asked(number)])
