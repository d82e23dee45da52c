"""Which outcome an exchange is."""

from __future__ import annotations

import msgspec

from tidegate.load.ask import Ask, Refusal
from tidegate.load.client_outcome import ClientOutcome
from tidegate.load.heard import End, Heard
from tidegate.policy.output.problem import Problem
from tidegate.wire.errors import REFUSALS

SHED_STATUSES = frozenset({429, 503, 529})
_SHED_CODES = frozenset(reason.value for reason, error in REFUSALS.items() if error.status == 429)
"""Codes that come in an event where the head of a stream went out before the refusal."""
_NO_ANSWER = frozenset({Problem.EMPTY.value, Problem.GARBLED.value, Problem.FORMAT.value})
"""Of the gateway's labels. An answer cut at its own token bound is one that was asked for, and says so itself."""
_UNHEARD = {
    End.NO_CONNECTION: ClientOutcome.REFUSED,
    End.UNSENT: ClientOutcome.UNSENT,
    End.LEFT: ClientOutcome.TIMEOUT,
}
_NOT_REFUSED = frozenset({ClientOutcome.OK, ClientOutcome.DEGRADED, ClientOutcome.ABNORMAL, ClientOutcome.CLIENT_FAULT})


def judge(ask: Ask, heard: Heard) -> tuple[ClientOutcome, str]:
    """The outcome, and a code for what is no success: the error's own, else what was wrong in a word."""
    outcome, code = _judge(ask, heard)
    if ask.refusal is None:
        return outcome, code
    if _is_as_refused(ask.refusal, heard):
        return ClientOutcome.EXPECTED, code
    # An engine that may answer is judged by its answer: one that says nothing is abnormal, as for any other request.
    if ask.refusal.may_answer and heard.status == 200:
        return outcome, code
    # Shed, broken or timed out, it was not looked at: that says nothing about how it would have been refused.
    return (ClientOutcome.UNEXPECTED if outcome in _NOT_REFUSED else outcome), code


def _judge(ask: Ask, heard: Heard) -> tuple[ClientOutcome, str]:
    if heard.end in _UNHEARD:
        return _UNHEARD[heard.end], heard.problem
    if heard.end is End.LOST and not heard.has_error:
        return ClientOutcome.BROKEN, heard.problem
    if heard.status != 200:
        return _of_status(heard)
    if heard.has_error:
        is_shed = heard.error_code in _SHED_CODES
        return (ClientOutcome.SHED if is_shed else ClientOutcome.ERROR), heard.error_code or "error_event"
    return _of_answer(ask, heard)


def _of_status(heard: Heard) -> tuple[ClientOutcome, str]:
    status = heard.status
    code = heard.error_code or f"status_{status}"
    if status in SHED_STATUSES:
        return ClientOutcome.SHED, code
    if 400 <= status < 500:
        return ClientOutcome.CLIENT_FAULT, code
    if status >= 500:
        return ClientOutcome.ERROR, code
    return ClientOutcome.ABNORMAL, code


def _of_answer(ask: Ask, heard: Heard) -> tuple[ClientOutcome, str]:
    if not heard.is_done:
        return (ClientOutcome.BROKEN, "no_done") if heard.is_stream else (ClientOutcome.ABNORMAL, "no_json")
    if not heard.parts:
        return ClientOutcome.ABNORMAL, Problem.EMPTY.value
    if heard.is_garbled:
        return ClientOutcome.ABNORMAL, Problem.GARBLED.value
    if heard.label in _NO_ANSWER:
        return ClientOutcome.ABNORMAL, heard.label
    if ask.wants_json and not _is_json(heard.text):
        return ClientOutcome.ABNORMAL, Problem.FORMAT.value
    if heard.degraded:
        return ClientOutcome.DEGRADED, heard.label
    return ClientOutcome.OK, heard.label


def _is_as_refused(refusal: Refusal, heard: Heard) -> bool:
    """Refused in whole, with a status and a code that it may have."""
    return (
        heard.end is End.COMPLETE
        and heard.status in refusal.statuses
        and (not refusal.codes or heard.error_code in refusal.codes)
    )


def _is_json(text: str | None) -> bool:
    if text is None:
        return False
    try:
        msgspec.json.decode(text)
    except msgspec.DecodeError:
        return False
    return True
