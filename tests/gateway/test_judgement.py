from __future__ import annotations

import json

import pytest

from tidegate.gateway.judgement import outcome_of, shown_error
from tidegate.policy.outcomes import Outcome


@pytest.mark.parametrize(
    ("status", "body", "outcome"),
    [
        (200, b"", Outcome.OK),
        (302, b"", Outcome.OK),
        (400, b"", Outcome.CLIENT_FAULT),
        (404, b"", Outcome.CLIENT_FAULT),
        (408, b"", Outcome.CLIENT_FAULT),
        (401, b"", Outcome.ENGINE_ERROR),
        (403, b"", Outcome.ENGINE_ERROR),
        (429, b"", Outcome.PUSHBACK),
        (529, b"", Outcome.PUSHBACK),
        (503, b"The engine is currently BUSY", Outcome.PUSHBACK),
        (503, b'{"error":{"message":"no slot available"}}', Outcome.PUSHBACK),
        (503, b'{"error":{"message":"Loading model"}}', Outcome.ENGINE_ERROR),
        (503, b"", Outcome.ENGINE_ERROR),
        (500, b"queue", Outcome.ENGINE_ERROR),
        (504, b"", Outcome.ENGINE_ERROR),
    ],
)
def test_a_status_says_who_is_to_blame(status: int, body: bytes, outcome: Outcome) -> None:
    assert outcome_of(status, body, is_own_key=True) is outcome


@pytest.mark.parametrize("status", [401, 403])
def test_a_key_of_the_clients_own_is_the_clients_fault(status: int) -> None:
    assert outcome_of(status, b"", is_own_key=False) is Outcome.CLIENT_FAULT


def test_an_error_in_openais_shape_is_shown_as_it_came() -> None:
    own = b'{"error": {"message": "m", "code": 400}}'
    assert shown_error(400, own, Outcome.CLIENT_FAULT) is own


@pytest.mark.parametrize(
    ("body", "outcome", "says"),
    [
        (b"<html>Bad Gateway</html>", Outcome.ENGINE_ERROR, "the engine answered 502: <html>Bad Gateway</html>"),
        (b'{"message": "vLLM of old", "type": "x"}', Outcome.CLIENT_FAULT, "vLLM of old"),
        (b'{"error": "llama.cpp of old"}', Outcome.ENGINE_ERROR, "502"),
        (b"\xff\xfe" * 1000, Outcome.ENGINE_ERROR, "502"),
        (b"", Outcome.PUSHBACK, "502"),
        (b"[1]", Outcome.ENGINE_ERROR, "502"),
    ],
)
def test_any_other_error_is_put_into_that_shape(body: bytes, outcome: Outcome, says: str) -> None:
    error = json.loads(shown_error(502, body, outcome))["error"]
    assert says in error["message"]
    assert error["code"] == outcome.value
    assert len(error["message"]) < 500
