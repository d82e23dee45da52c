from __future__ import annotations

import json

import pytest

from tidegate.policy.decisions import Reason
from tidegate.policy.outcomes import EFFECTS, Outcome
from tidegate.wire import header_names as names
from tidegate.wire.errors import FAILURES, MISTAKE_OF_STATUS, MISTAKES, REFUSALS, Mistake, retry_headers

ONLY_WAITING = {
    Reason.BEHIND_OTHERS,
    Reason.SLOTS,
    Reason.SEQUENCES,
    Reason.LIMIT,
    Reason.PREFILL,
    Reason.BREAKER,
    Reason.GROUP_SHARE,
    Reason.HELD,
    Reason.CLASS_SHARE,
    Reason.MODEL_CONCURRENCY,
}


@pytest.mark.parametrize("reason", [reason for reason in Reason if reason not in ONLY_WAITING])
def test_every_reason_of_a_refusal_has_its_http_error(reason: Reason) -> None:
    assert 400 <= REFUSALS[reason].status < 600


def test_every_failure_that_a_client_is_told_has_its_http_error() -> None:
    assert set(FAILURES) == set(Outcome) - {Outcome.OK, Outcome.CLIENT_LEFT, Outcome.CLIENT_FAULT, Outcome.OUTRUN}
    assert set(EFFECTS) == set(Outcome)


@pytest.mark.parametrize("mistake", Mistake)
def test_every_mistake_has_its_http_error_and_a_status_of_the_client(mistake: Mistake) -> None:
    # Of a job, its client asked for nothing wrong: its answer was longer than there is room for.
    assert 400 <= MISTAKES[mistake].status < 500 or mistake is Mistake.RESULT_TOO_LARGE


def test_the_statuses_that_reading_refuses_with_are_known() -> None:
    assert {status: MISTAKE_OF_STATUS.get(status) for status in (405, 408, 413, 431)} == {
        405: Mistake.WRONG_METHOD,
        408: Mistake.TOO_SLOW,
        413: Mistake.BODY_TOO_LARGE,
        431: Mistake.HEAD_TOO_LARGE,
    }


def test_an_error_has_openais_shape() -> None:
    body = json.loads(REFUSALS[Reason.QUEUE_FULL].body("queue_full", "64 wait", "model"))
    assert body == {
        "error": {
            "message": "Too many requests wait for this model: 64 wait",
            "type": "overloaded_error",
            "param": "model",
            "code": "queue_full",
        }
    }


@pytest.mark.parametrize(
    ("retry_after_s", "whole", "exact_ms"), [(0.2, b"1", b"200"), (1.0, b"1", b"1000"), (2.3, b"3", b"2300")]
)
def test_a_client_that_may_come_back_is_told_when(retry_after_s: float, whole: bytes, exact_ms: bytes) -> None:
    assert dict(retry_headers(retry_after_s)) == {
        names.RETRY_AFTER: whole,
        names.RETRY_AFTER_MS: exact_ms,
        names.SHOULD_RETRY: b"true",
    }


def test_a_client_for_whom_coming_back_is_useless_is_told_so() -> None:
    assert retry_headers(None) == [(names.SHOULD_RETRY, b"false")]
