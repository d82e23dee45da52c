"""How a request ended, as its client saw it."""

from __future__ import annotations

from enum import StrEnum


class ClientOutcome(StrEnum):
    """A closed set: every request that was due ends in exactly one of these. None of them is ever added to another.

    Late is not among them: it is said of an answer beside an objective (``figures``), and a late answer is an answer.
    """

    __hash__ = str.__hash__

    OK = "ok"
    """The whole answer, of the model that was asked."""
    DEGRADED = "degraded"
    """A whole answer, labelled as a lesser one (``x-tidegate-degraded``)."""
    EXPECTED = "expected"
    """A request that must be refused was refused, with the status and code that it should get."""
    UNEXPECTED = "unexpected"
    """A request that must be refused was answered, or refused in another way."""
    SHED = "shed"
    """429, 503 or 529: refused for load. Nothing was computed."""
    CLIENT_FAULT = "client_fault"
    """Another 4xx, to a request that is right."""
    ERROR = "error"
    """Another 5xx, or an error event in the stream: a failure that says so."""
    ABNORMAL = "abnormal"
    """Status 200 and no answer: empty, no JSON, no schema's JSON, garbled."""
    BROKEN = "broken"
    """The connection ended before the answer did, or was no HTTP."""
    TIMEOUT = "timeout"
    """The client waited as long as it waits (``Ask.patience_s``) and left."""
    REFUSED = "refused"
    """No connection."""
    UNSENT = "unsent"
    """Due, and not sent when the run was ended."""


ANSWERED = frozenset({ClientOutcome.OK, ClientOutcome.DEGRADED})
ERRORS = frozenset(
    {
        ClientOutcome.UNEXPECTED,
        ClientOutcome.CLIENT_FAULT,
        ClientOutcome.ERROR,
        ClientOutcome.ABNORMAL,
        ClientOutcome.BROKEN,
        ClientOutcome.TIMEOUT,
        ClientOutcome.REFUSED,
    }
)
"""What an error rate counts (SPEC S1-51, S2-26, S2-39). Shed stands apart, and is never hidden: it has its own rate."""
