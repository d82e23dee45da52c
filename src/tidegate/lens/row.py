"""One finished request as plain columns: the form in which a record travels and is kept."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from tidegate.policy.decisions import Reason
from tidegate.policy.outcomes import Outcome
from tidegate.policy.record import Record
from tidegate.policy.request import NEVER


@dataclass(slots=True)
class Edge:
    """What only the HTTP edge knows about a request; ``Path`` never sees it."""

    request_id: str
    """The ``x-request-id`` of the response; ``tidegate explain request`` asks by it."""
    route: str
    """Path of the call, such as ``/v1/chat/completions``; never the query string."""
    status: int
    """HTTP status sent to the client; 0 when the client left before a head was sent."""
    code: str = ""
    """``code`` of the error that was answered, "" for none."""
    refused_in_stream: bool = False
    """The refusal or error went out as an event because heartbeats had already opened the stream."""
    longest_gap_s: float = 0.0
    """Longest silence between two reads of the engine's answer; 0.0 when it was not measured."""


class Row(msgspec.Struct, array_like=True, gc=False):
    """Times are seconds on the data process's monotonic clock; 0.0 for a moment that never came.

    A call that was answered at the edge and never became a ``Request`` (a body that is too large
    or no JSON, a missing key) has a row with no upstream, tenant or class.
    """

    id: int
    request_id: str
    route: str
    status: int
    code: str
    arrived_at: float
    closed_at: float
    body_bytes: int
    refused_in_stream: bool = False
    longest_gap_s: float = 0.0
    upstream: str = ""
    tenant: str = ""
    service_class: str = ""
    streaming: bool = False
    first_arrived_at: float = 0.0
    queued_at: float = 0.0
    admitted_at: float = 0.0
    sent_at: float = 0.0
    first_token_at: float = 0.0
    deadline_s: float | None = None
    """From arrival; None when the client set none."""
    first_byte_s: float | None = None
    """How long after arrival the client leaves without a first byte; None: it stays."""
    attempts: int = 0
    replica: str | None = None
    outcome: Outcome | None = None
    refused: Reason | None = None
    waited_for: Reason | None = None
    degraded: str | None = None
    prompt_tokens: int = 0
    output_tokens: int = 0
    max_tokens: int | None = None
    sequences: int = 0
    reserved_slots: int = 0
    predicted_wait_s: float = 0.0
    retry_after_s: float = 0.0
    repeat: bool = False

    @property
    def is_late(self) -> bool:
        """It was answered in full, but after its deadline."""
        return (
            self.outcome is Outcome.OK
            and self.deadline_s is not None
            and self.closed_at - self.arrived_at > self.deadline_s
        )


def row_of(record: Record, edge: Edge) -> Row:
    """The row of a request that went through ``Path``. Positional, for the sake of the hot path."""
    request = record.request
    arrived_at = request.arrived_at
    deadline_at = request.deadline_at
    first_byte_by = request.first_byte_by
    return Row(
        request.id,
        edge.request_id,
        edge.route,
        edge.status,
        edge.code,
        arrived_at,
        record.closed_at,
        request.body_bytes,
        edge.refused_in_stream,
        edge.longest_gap_s,
        request.upstream,
        request.tenant,
        record.service_class,
        request.streaming,
        record.first_arrived_at,
        record.queued_at,
        record.admitted_at,
        record.sent_at,
        record.first_token_at,
        None if deadline_at == NEVER else deadline_at - arrived_at,
        None if first_byte_by == NEVER else first_byte_by - arrived_at,
        record.attempts,
        record.replica,
        record.outcome,
        record.refused,
        record.waited_for,
        record.degraded,
        record.prompt_tokens,
        record.output_tokens,
        request.max_tokens,
        request.sequences,
        record.reserved_slots,
        record.predicted_wait_s,
        record.retry_after_s,
        record.repeat,
    )


def row_of_invalid(edge: Edge, request_id: int, arrived_at: float, closed_at: float, body_bytes: int) -> Row:
    """The row of a call that never became a ``Request``."""
    return Row(
        request_id,
        edge.request_id,
        edge.route,
        edge.status,
        edge.code,
        arrived_at,
        closed_at,
        body_bytes,
        edge.refused_in_stream,
        first_arrived_at=arrived_at,
    )
