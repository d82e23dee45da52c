"""What the HTTP edge adds to a record, and the row that the two make."""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.lens.row import Row
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
    reuse: str = ""
    """``joined`` or ``replayed``: the answer is that of the request ``original_id`` (``lens.row.Row``)."""
    original_id: str = ""
    input_problem: str = ""
    """What is wrong with a request that was passed on all the same, such as ``repetitive_input``."""
    output_problem: str = ""
    """What is wrong with the answer that the client got, or was kept from (``policy.output.Problem``)."""
    continuations: int = 0
    """How often its stream went on at another replica."""
    continued_from: str = ""
    """The replica that began it, where it did."""


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
        record.model or request.upstream,
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
        request.estimated_tokens or request.prompt_tokens,
        request.counted_tokens,
        request.counted_by,
        record.is_prompt_told,
        record.cached_tokens,
        request.in_burst,
        edge.reuse,
        edge.original_id,
        edge.output_problem,
        edge.input_problem,
        edge.continuations,
        edge.continued_from,
        request.upstream if record.degraded and request.upstream != record.model else "",
        record.is_stored,
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
