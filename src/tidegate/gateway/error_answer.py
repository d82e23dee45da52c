"""An error as a client gets it: one value for every refusal and every failed attempt."""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.gateway.judgement import shown_error
from tidegate.gateway.relay import Relay
from tidegate.gateway.reply import JSON_LINE, Reply, header_lines
from tidegate.policy.decisions import Answer, Reason, Refuse
from tidegate.policy.outcomes import Outcome
from tidegate.policy.output.problem import Finding
from tidegate.wire import header_names as names
from tidegate.wire.errors import FAILURES, OUTPUTS, REFUSALS, retry_headers
from tidegate.wire.responses import header_pairs
from tidegate.wire.sse import error_event

RETRYABLE = frozenset(
    {Outcome.PUSHBACK, Outcome.CONNECT_FAILED, Outcome.ENGINE_ERROR, Outcome.SHUTDOWN, Outcome.INVALID_OUTPUT}
)
"""Failures that tell the client whether to come back; the others leave it to the status code."""
RETRY_NAMES = frozenset({names.RETRY_AFTER, names.RETRY_AFTER_MS, names.SHOULD_RETRY})

RESTART_S = 1.0
"""A gateway that shuts down is usually replaced at once."""


@dataclass(slots=True)
class ErrorAnswer:
    """``body`` is JSON in OpenAI's shape; it also serves as an event inside a stream."""

    status: int
    code: str
    body: bytes
    headers: list[tuple[bytes, bytes]]


def refused(refusal: Refuse) -> ErrorAnswer:
    """``Path`` said no."""
    code = refusal.reason.value
    error = REFUSALS[refusal.reason]
    headers = [(names.REASON, code.encode()), *retry_headers(refusal.retry_after_s)]
    return ErrorAnswer(error.status, code, error.body(code, refusal.detail), headers)


def stored_headers(answer: Answer) -> list[tuple[bytes, bytes]]:
    """``Path`` said no, and the ladder found a stored answer: how old it is, and what it stands for."""
    headers = [(names.AGE, b"%d" % answer.age_s)]
    if answer.degraded is not None:
        headers.append((names.DEGRADED, answer.degraded.encode()))
    if answer.reason is not None:
        headers.append((names.REASON, answer.reason.value.encode()))
    return headers


def shutting_down() -> ErrorAnswer:
    """Refused because the process drains."""
    return refused(Refuse(Reason.SHUTTING_DOWN, RESTART_S))


def failed(outcome: Outcome, detail: str, retry_after_s: float | None) -> ErrorAnswer:
    """The attempt failed and the engine said nothing that could be shown."""
    error = FAILURES[outcome]
    headers = retry_headers(retry_after_s) if outcome in RETRYABLE else []
    return ErrorAnswer(error.status, outcome.value, error.body(outcome.value, detail), headers)


def bad_output(finding: Finding) -> ErrorAnswer:
    """The engine answered, and the answer is not fit to be given. Asking again may well help."""
    error, code = OUTPUTS[finding.problem], finding.problem.value
    headers = [(names.OUTPUT, code.encode()), *retry_headers(RESTART_S)]
    return ErrorAnswer(error.status, code, error.body(code, finding.evidence), headers)


def engines_own(
    outcome: Outcome, status: int, headers: list[tuple[bytes, bytes]], body: bytes, retry_after_s: float | None
) -> ErrorAnswer:
    """The engine answered with an error of its own, which the client gets in OpenAI's shape."""
    if outcome is Outcome.ENGINE_ERROR and status < 500:
        return failed(outcome, "the engine refused the gateway's own API key", None)
    # What the engine says about retrying is better informed than what we could say.
    own = [header for header in headers if header[0] in RETRY_NAMES]
    if not own and outcome in RETRYABLE:
        own = retry_headers(retry_after_s)
    return ErrorAnswer(status, outcome.value, shown_error(status, body, outcome), own)


def of_attempt(
    outcome: Outcome, detail: str, relay: Relay | None, body: bytes | None, retry_after_s: float | None
) -> ErrorAnswer:
    """The attempt failed; ``body``: of an error that the engine itself gave."""
    if relay is None or body is None:
        return failed(outcome, detail, retry_after_s)
    return engines_own(outcome, relay.status, header_pairs(relay.head), body, retry_after_s)


def tell(error: ErrorAnswer, reply: Reply, relay: Relay | None, own_lines: bytes) -> None:
    """Send an error in whatever form the client can still take it."""
    if not reply.has_head:
        reply.whole(error.status, JSON_LINE + header_lines(error.headers) + own_lines, error.body)
    elif relay is None or relay.scan is not None or relay.held is not None:
        # An event that was cut in the middle must be ended, or ours would become part of it.
        is_open = relay is not None and relay.is_cut_open
        reply.end((b"\n\n" if is_open else b"") + error_event(error.body))
    else:
        reply.break_off()
