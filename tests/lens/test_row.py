"""A record becomes a row without losing anything, and survives the channel's encoding."""

from __future__ import annotations

import msgspec
import pytest

from tests.lens.rows import row
from tidegate.lens.edge import Edge, row_of, row_of_invalid
from tidegate.lens.row import Row
from tidegate.policy.decisions import Reason
from tidegate.policy.outcomes import Outcome
from tidegate.policy.record import Record
from tidegate.policy.request import Request
from tidegate.policy.token_source import TokenSource

EDGE = Edge(
    "req-1",
    "/v1/chat/completions",
    503,
    "queue_timeout",
    True,
    0.25,
    output_problem="output_empty",
    input_problem="repetitive_input",
)


def test_every_column_of_a_row_comes_from_its_record_or_its_edge() -> None:
    request = Request(
        7, "chat", 10.0, 99, 50, False, 64, 2, 300, True, "acme", None, None, None, None, None, 12.0, 15.0
    )
    request.estimated_tokens, request.counted_tokens, request.counted_by = 40, 50, TokenSource.TOKENIZER
    record = Record(
        request, "long", 9.0, 10.1, 10.2, 10.3, 10.4, 11.0, 2, "chat-1", Outcome.CUT, Reason.QUEUE_TIMEOUT,
        Reason.SLOTS, "cache", 51, 20, 3, 0.5, 1.5, True, 70,
    )  # fmt: skip
    record.is_prompt_told = request.in_burst = record.is_stored = True
    record.model = "asked"
    assert row_of(record, EDGE) == Row(
        id=7,
        request_id="req-1",
        route="/v1/chat/completions",
        status=503,
        code="queue_timeout",
        arrived_at=10.0,
        closed_at=11.0,
        body_bytes=300,
        refused_in_stream=True,
        longest_gap_s=0.25,
        upstream="asked",
        tenant="acme",
        service_class="long",
        streaming=True,
        first_arrived_at=9.0,
        queued_at=10.1,
        admitted_at=10.2,
        sent_at=10.3,
        first_token_at=10.4,
        deadline_s=5.0,
        first_byte_s=2.0,
        attempts=2,
        replica="chat-1",
        outcome=Outcome.CUT,
        refused=Reason.QUEUE_TIMEOUT,
        waited_for=Reason.SLOTS,
        degraded="cache",
        prompt_tokens=51,
        output_tokens=20,
        max_tokens=64,
        sequences=2,
        reserved_slots=3,
        predicted_wait_s=0.5,
        retry_after_s=1.5,
        repeat=True,
        estimated_tokens=40,
        counted_tokens=50,
        counted_by=TokenSource.TOKENIZER,
        is_prompt_told=True,
        in_burst=True,
        output_problem="output_empty",
        input_problem="repetitive_input",
        served_by="chat",
        is_stored=True,
    )


def test_a_client_without_deadline_leaves_the_column_empty() -> None:
    found = row_of(Record(Request(1, "chat", 10.0, 0), "interactive", 10.0), EDGE)
    assert found.deadline_s is None
    assert found.first_byte_s is None


def test_a_call_refused_at_the_edge_has_a_row_without_upstream() -> None:
    found = row_of_invalid(Edge("req-2", "/v1/completions", 413, "body_too_large"), 3, 10.0, 10.5, 40_000_000)
    assert (found.upstream, found.status, found.code, found.body_bytes) == ("", 413, "body_too_large", 40_000_000)
    assert found.closed_at - found.arrived_at == 0.5


@pytest.mark.parametrize("outcome", [None, *Outcome])
@pytest.mark.parametrize("reason", [None, *Reason])
def test_rows_survive_messagepack(outcome: Outcome | None, reason: Reason | None) -> None:
    sent = row(outcome=outcome, refused=reason, waited_for=reason)
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(sent), type=Row) == sent


@pytest.mark.parametrize(
    ("changes", "is_late"),
    [
        ({"deadline_s": 2.5}, True),
        ({"deadline_s": 3.0}, False),
        ({}, False),
        ({"deadline_s": 2.5, "outcome": Outcome.CLIENT_LEFT}, False),
    ],
)
def test_late_means_answered_in_full_after_the_deadline(changes: dict[str, object], is_late: bool) -> None:
    assert row(**changes).is_late is is_late
