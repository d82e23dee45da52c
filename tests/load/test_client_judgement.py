"""Every outcome, and what decides it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from tests.load.asks_of_a_test import ask
from tidegate.load.answer_scan import Usage
from tidegate.load.ask import Refusal
from tidegate.load.client_judgement import judge
from tidegate.load.client_outcome import ClientOutcome as O
from tidegate.load.heard import End, Heard, hear_body
from tidegate.policy.decisions import Reason

STREAM = Heard(end=End.COMPLETE, status=200, is_stream=True, is_done=True, parts=3)


def heard(**changes: Any) -> Heard:
    return replace(STREAM, **changes)


def answered(status: int, body: Any, **changes: Any) -> Heard:
    """A body that came whole."""
    made = Heard(end=End.COMPLETE, status=status, **changes)
    hear_body(made, body if isinstance(body, bytes) else json.dumps(body).encode())
    return made


def message(**fields: Any) -> dict[str, Any]:
    return {"choices": [{"message": {"role": "assistant", **fields}, "finish_reason": "stop"}]}


def error(code: str | None = "made_up") -> dict[str, Any]:
    return {"error": {"message": "m", "type": "server_error", "param": None, "code": code}}


TO_BE_ANSWERED = [
    (heard(), O.OK, ""),
    (answered(200, message(content="x")), O.OK, ""),
    (answered(200, {"choices": [{"text": "x"}]}), O.OK, ""),
    (answered(200, message(content=None, tool_calls=[{"id": "1"}])), O.OK, ""),
    (answered(200, message(refusal="no")), O.OK, ""),
    (answered(200, {"data": [{"embedding": [0.1]}]}), O.OK, ""),
    (heard(label="output_truncated"), O.OK, "output_truncated"),
    (heard(degraded="model:small"), O.DEGRADED, ""),
    (answered(200, message(content="x"), degraded="stored"), O.DEGRADED, ""),
    (answered(429, error("quota")), O.SHED, "quota"),
    (answered(503, b"busy"), O.SHED, "status_503"),
    (answered(529, error(None)), O.SHED, "server_error"),
    (heard(has_error=True, error_code=Reason.QUEUE_TIMEOUT.value), O.SHED, "queue_timeout"),
    (answered(400, error("invalid")), O.CLIENT_FAULT, "invalid"),
    (answered(404, {"detail": "Not Found"}), O.CLIENT_FAULT, "status_404"),
    (answered(500, error()), O.ERROR, "made_up"),
    (answered(502, b"<html>"), O.ERROR, "status_502"),
    (heard(has_error=True), O.ERROR, "error_event"),
    (heard(end=End.LOST, problem="closed", has_error=True, error_code="broke"), O.ERROR, "broke"),
    (answered(200, {"error": "it broke"}), O.ERROR, "error"),
    (heard(parts=0), O.ABNORMAL, "output_empty"),
    (answered(200, message(content="")), O.ABNORMAL, "output_empty"),
    (answered(200, {"choices": []}), O.ABNORMAL, "output_empty"),
    (answered(200, b'{"choices":[{"mess'), O.ABNORMAL, "no_json"),
    (answered(200, b'{"choices":[{"text":"\xff"}]}'), O.ABNORMAL, "no_json"),
    (heard(is_garbled=True), O.ABNORMAL, "output_garbled"),
    (heard(label="output_format"), O.ABNORMAL, "output_format"),
    (answered(307, b""), O.ABNORMAL, "status_307"),
    (heard(is_done=False), O.BROKEN, "no_done"),
    (heard(end=End.LOST, problem="closed"), O.BROKEN, "closed"),
    (Heard(end=End.LOST, problem="ConnectionResetError"), O.BROKEN, "ConnectionResetError"),
    (Heard(end=End.LEFT, problem="patience"), O.TIMEOUT, "patience"),
    (heard(end=End.LEFT, problem="patience"), O.TIMEOUT, "patience"),
    (Heard(end=End.NO_CONNECTION, problem="ConnectionRefusedError"), O.REFUSED, "ConnectionRefusedError"),
    (Heard(end=End.UNSENT, problem="EMFILE"), O.UNSENT, "EMFILE"),
]
TO_BE_REFUSED = [
    (answered(400, error("context_length_exceeded")), O.EXPECTED),
    (answered(400, error("other")), O.UNEXPECTED),
    (answered(404, error("context_length_exceeded")), O.UNEXPECTED),
    (heard(), O.UNEXPECTED),
    (heard(degraded="model:small"), O.UNEXPECTED),
    (heard(parts=0), O.UNEXPECTED),
    (answered(429, error("quota")), O.SHED),
    (answered(500, error()), O.ERROR),
    (heard(end=End.LOST), O.BROKEN),
    (answered(400, error("context_length_exceeded"), problem="closed"), O.EXPECTED),
    (replace(answered(400, error("context_length_exceeded")), end=End.LOST), O.UNEXPECTED),
    (Heard(end=End.LEFT), O.TIMEOUT),
    (Heard(end=End.NO_CONNECTION), O.REFUSED),
    (Heard(end=End.UNSENT), O.UNSENT),
]


@pytest.mark.parametrize(("found", "outcome", "code"), TO_BE_ANSWERED)
def test_outcomes_of_a_request_that_is_to_be_answered(found: Heard, outcome: O, code: str) -> None:
    assert judge(ask(), found) == (outcome, code)


@pytest.mark.parametrize(("found", "outcome"), TO_BE_REFUSED)
def test_outcomes_of_a_request_that_is_to_be_refused(found: Heard, outcome: O) -> None:
    refusal = Refusal(frozenset({400}), frozenset({"context_length_exceeded"}))
    assert judge(ask(refusal=refusal), found)[0] is outcome


def test_any_code_will_do_where_none_is_named_and_an_answer_where_it_may_be_given() -> None:
    assert judge(ask(refusal=Refusal()), answered(400, b"?"))[0] is O.EXPECTED
    assert judge(ask(refusal=Refusal(may_answer=True)), heard())[0] is O.OK
    assert judge(ask(refusal=Refusal(may_answer=True)), heard(parts=0))[0] is O.ABNORMAL


@pytest.mark.parametrize(
    ("text", "outcome"), [('{"a":1}', O.OK), (" [1] ", O.OK), ("Sure: {}", O.ABNORMAL), (None, O.ABNORMAL)]
)
def test_what_must_be_json_is_abnormal_where_it_is_none(text: str | None, outcome: O) -> None:
    assert judge(ask(wants_json=True), heard(text=text))[0] is outcome


def test_every_outcome_has_a_case_above() -> None:
    assert {case[1] for case in TO_BE_ANSWERED} | {case[1] for case in TO_BE_REFUSED} == {*O}


def test_a_whole_answer_tells_its_usage_its_text_and_its_finish_reason() -> None:
    usage = {"prompt_tokens": 8, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 4}}
    found = answered(200, {**message(content="text"), "usage": usage})
    assert (found.text, found.finish_reason, found.usage) == ("text", "stop", Usage(8, 4, 5))
    bare = answered(200, {**message(content=[1]), "usage": {"completion_tokens": 5, "prompt_tokens_details": None}})
    assert (bare.text, bare.usage) == ("", Usage(0, 0, 5))
    assert answered(200, {**message(content="x"), "usage": {"prompt_tokens": 3}}).usage is None
