"""Thousands of hostile clients against a gateway in memory: nothing breaks, nothing stays, answers are well-formed.

The whole is ``python bench/fuzz.py --requests 100000``, on a real data process.
"""

from __future__ import annotations

from collections import Counter

import pytest

from tests.fuzz.answers import MalformedError, answers_in
from tests.fuzz.attack import Attack, right, said
from tests.fuzz.corpus import REQUESTS
from tests.fuzz.hostile import attack
from tests.fuzz.memory import hold_to_it
from tests.gateway.stand import WHOLE, Engine, Step, stream_of
from tidegate.wire.requests import Incoming

ATTACKS = 2500


def script(incoming: Incoming) -> list[Step]:
    """An honest engine."""
    return [0.01, *stream_of("a", "b")] if b'"stream": true' in incoming.body else [0.01, WHOLE]


@pytest.mark.parametrize("given", REQUESTS, ids=lambda given: given.name)
def test_what_once_broke_something_does_no_more(given: Attack) -> None:
    hold_to_it(Engine(script), [given])


def test_no_hostile_request_breaks_anything() -> None:
    answers = hold_to_it(Engine(script), map(attack, range(ATTACKS)))
    statuses = Counter(answer.status for answer in answers)
    # It would prove little if all of them failed in the same way, or none got through to the engine.
    assert statuses[200] > ATTACKS / 20
    assert statuses[400] > ATTACKS / 5
    assert len(statuses) >= 7
    # A transfer coding that is not served, and deadlines of a millisecond.
    assert {status for status in statuses if status >= 500} <= {501, 504}


def test_the_same_seed_is_the_same_attack() -> None:
    assert [attack(seed) for seed in range(50)] == [attack(seed) for seed in range(50)]


@pytest.mark.parametrize(
    "raw",
    [
        b"HTTP/1.1 200\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 1\r\n\r\nx",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nabc\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 5\r\n\r\n{",
        b"HTTP/1.1 400 Bad\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}",
        b"HTTP/1.1 204 No\r\ncontent-length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nx a: b\r\ncontent-length: 0\r\n\r\n",
    ],
)
def test_the_reader_of_answers_catches_what_is_malformed(raw: bytes) -> None:
    with pytest.raises(MalformedError):
        answers_in(raw, is_closed=True)


def test_a_gateway_that_answers_nothing_would_be_caught() -> None:
    with pytest.raises(AssertionError, match="no answer came"):
        hold_to_it(Engine(["close"]), [Attack("nobody", [b""], "wait", is_due=True), Attack("x", [right(said("m"))])])
