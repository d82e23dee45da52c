"""Errors as clients of the OpenAI API know them: ``{"error": {"message", "type", "param", "code"}}``.

Two tables say what the outside sees of a refusal (``Reason``) and of a failed attempt
(``Outcome``); ``Mistake`` lists what is refused before a request exists.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

import msgspec

from tidegate.policy.decisions import Reason
from tidegate.policy.outcomes import Outcome
from tidegate.policy.output.problem import Problem
from tidegate.wire import header_names as names


@dataclass(frozen=True, slots=True)
class HttpError:
    """One kind of error on the wire."""

    status: int
    type: str
    message: str

    def body(self, code: str, detail: str = "", param: str | None = None) -> bytes:
        """The JSON body. ``detail`` is added to the message: figures, names, what to do."""
        message = f"{self.message}: {detail}" if detail else self.message
        return msgspec.json.encode({"error": {"message": message, "type": self.type, "param": param, "code": code}})


_INVALID = "invalid_request_error"
_RATE = "rate_limit_error"
_OVERLOADED = "overloaded_error"
_SERVER = "server_error"

# 429 where coming back later helps and the cause is load, 503 where nothing can serve at all, 4xx
# where the request itself is wrong. 408 for a deadline that is over: nobody waits for the answer.
REFUSALS: dict[Reason, HttpError] = {
    Reason.UNKNOWN_MODEL: HttpError(404, _INVALID, "The model does not exist; GET /v1/models lists those that do"),
    Reason.NEVER_FITS: HttpError(400, _INVALID, "Prompt and output together are longer than the model's context"),
    Reason.POOL_TOO_SMALL: HttpError(
        400, _INVALID, "Prompt and output need more KV cache than any replica has; lower max_tokens or n"
    ),
    Reason.MARKED: HttpError(429, _RATE, "Requests of this session, user, source or model are held back for a while"),
    Reason.BLOCKED: HttpError(429, _RATE, "Requests of this session, user, tenant or source are blocked for a while"),
    Reason.QUOTA: HttpError(429, _RATE, "The quota of this API key is used up"),
    Reason.MODEL_RATE: HttpError(429, _RATE, "The model's own rate, which all API keys share, is used up"),
    Reason.QUEUE_FULL: HttpError(429, _OVERLOADED, "Too many requests wait for this model"),
    Reason.QUEUE_TOKENS: HttpError(429, _OVERLOADED, "Too many prompt tokens wait for this model"),
    Reason.QUEUE_BYTES: HttpError(429, _OVERLOADED, "Too many bytes wait for this model"),
    Reason.DEADLINE_PASSED: HttpError(408, _INVALID, "The request's deadline has passed"),
    Reason.DEADLINE_UNREACHABLE: HttpError(429, _OVERLOADED, "The predicted wait is longer than the deadline allows"),
    Reason.QUEUE_TIMEOUT: HttpError(429, _OVERLOADED, "The request waited as long as a request of its class may"),
    Reason.NO_REPLICA: HttpError(503, _SERVER, "No healthy replica serves this model"),
    Reason.RETRY_ALLOWANCE: HttpError(503, _SERVER, "The engine failed, and the allowance for retries is spent"),
    Reason.ATTEMPT_FAILED: HttpError(503, _SERVER, "The engine failed, and nothing could be given instead"),
    Reason.SHUTTING_DOWN: HttpError(503, _SERVER, "The gateway is shutting down"),
}

FAILURES: dict[Outcome, HttpError] = {
    Outcome.PUSHBACK: HttpError(503, _OVERLOADED, "The engine is busy and takes no more requests"),
    Outcome.CONNECT_FAILED: HttpError(502, _SERVER, "The engine could not be reached"),
    Outcome.ENGINE_ERROR: HttpError(502, _SERVER, "The engine failed before it answered"),
    Outcome.CUT: HttpError(502, _SERVER, "The engine's answer was cut short; what came before is incomplete"),
    Outcome.FIRST_BYTE_TIMEOUT: HttpError(504, _SERVER, "The engine's first byte did not come in time"),
    Outcome.GAP_TIMEOUT: HttpError(504, _SERVER, "The engine fell silent in the middle of its answer"),
    Outcome.TOTAL_TIMEOUT: HttpError(504, _SERVER, "The answer was not complete in the time allowed"),
    Outcome.INVALID_OUTPUT: HttpError(502, _SERVER, "The engine's output is invalid"),
    Outcome.SHUTDOWN: HttpError(503, _SERVER, "The gateway stopped before the answer was complete"),
}

OUTPUTS: dict[Problem, HttpError] = {
    Problem.EMPTY: HttpError(502, _SERVER, "The engine's answer is empty"),
    Problem.TRUNCATED: HttpError(502, _SERVER, "The engine's answer ends before it is complete"),
    Problem.GARBLED: HttpError(502, _SERVER, "The engine's answer is garbled"),
    Problem.FORMAT: HttpError(502, _SERVER, "The engine's answer is not what was asked for"),
    Problem.REPETITIVE: HttpError(502, _SERVER, "The engine repeats itself, and was stopped"),
}
"""Where ``output`` says that such an answer ends with an error."""


class Mistake(Enum):
    """What is refused before a request exists. The value is the error's ``code``."""

    BAD_HTTP = "bad_http"
    BAD_JSON = "invalid_json"
    BAD_FIELD = "invalid_value"
    BAD_HEADER = "invalid_header"
    EMPTY_INPUT = "empty_input"
    INVALID_CHARS = "invalid_chars"
    REPETITIVE_INPUT = "repetitive_input"
    KEY_REUSED = "idempotency_key_reused"
    KEY_IN_USE = "idempotency_key_in_use"
    JOBS_FULL = "jobs_full"
    NO_JOB = "unknown_job"
    JOB_EXPIRED = "job_expired"
    JOB_UNFINISHED = "job_unfinished"
    RESULT_TOO_LARGE = "result_too_large"
    NO_KEY = "invalid_api_key"
    NO_ROUTE = "unknown_url"
    WRONG_METHOD = "method_not_allowed"
    BODY_TOO_LARGE = "request_too_large"
    HEAD_TOO_LARGE = "headers_too_large"
    TOO_SLOW = "request_timeout"


MISTAKES: dict[Mistake, HttpError] = {
    Mistake.BAD_HTTP: HttpError(400, _INVALID, "The request is not acceptable HTTP/1.1"),
    Mistake.BAD_JSON: HttpError(400, _INVALID, "The request's body is no JSON object"),
    Mistake.BAD_FIELD: HttpError(400, _INVALID, "A field of the request's body has a wrong value"),
    Mistake.BAD_HEADER: HttpError(400, _INVALID, "A header of the request has a wrong value"),
    Mistake.EMPTY_INPUT: HttpError(400, _INVALID, "The request says nothing"),
    Mistake.INVALID_CHARS: HttpError(400, _INVALID, "The request holds characters that are no text"),
    Mistake.REPETITIVE_INPUT: HttpError(400, _INVALID, "The prompt says the same over and over"),
    Mistake.KEY_REUSED: HttpError(422, _INVALID, "The Idempotency-Key belongs to another request"),
    Mistake.KEY_IN_USE: HttpError(409, _INVALID, "The request under this Idempotency-Key still runs"),
    Mistake.JOBS_FULL: HttpError(429, _OVERLOADED, "There is no room for another job"),
    Mistake.NO_JOB: HttpError(404, _INVALID, "There is no such job; ids do not survive a restart of the gateway"),
    Mistake.JOB_EXPIRED: HttpError(410, _INVALID, "The job's result was kept as long as results are"),
    Mistake.JOB_UNFINISHED: HttpError(409, _INVALID, "The job has no result yet"),
    Mistake.RESULT_TOO_LARGE: HttpError(507, _SERVER, "The job's result is longer than jobs.max_result_bytes"),
    Mistake.NO_KEY: HttpError(401, _INVALID, "A valid API key is needed: Authorization: Bearer KEY"),
    Mistake.NO_ROUTE: HttpError(404, _INVALID, "There is no such path"),
    Mistake.WRONG_METHOD: HttpError(405, _INVALID, "The path does not take this method"),
    Mistake.BODY_TOO_LARGE: HttpError(413, _INVALID, "The request's body is too large"),
    Mistake.HEAD_TOO_LARGE: HttpError(431, _INVALID, "The request's headers are too large"),
    Mistake.TOO_SLOW: HttpError(408, _INVALID, "The request did not arrive in time"),
}

MISTAKE_OF_STATUS = {error.status: mistake for mistake, error in MISTAKES.items() if error.status != 400}
"""For statuses that ``wire.requests`` refuses with; any other is ``BAD_HTTP``."""


def retry_headers(retry_after_s: float | None) -> list[tuple[bytes, bytes]]:
    """What tells a client when to come back, or that it need not (R7).

    ``retry-after`` is rounded up to whole seconds, as its syntax asks; ``retry-after-ms`` is exact.
    """
    if retry_after_s is None:
        return [(names.SHOULD_RETRY, b"false")]
    return [
        (names.RETRY_AFTER, b"%d" % max(1, math.ceil(retry_after_s))),
        (names.RETRY_AFTER_MS, b"%d" % max(1, round(retry_after_s * 1000))),
        (names.SHOULD_RETRY, b"true"),
    ]
