"""The log line of a request: complete, one line, not forgeable."""

from __future__ import annotations

from tests.lens.rows import row, unsent
from tidegate.lens.logline import log_line
from tidegate.lens.row import Row
from tidegate.policy.decisions import Reason


def pairs(each: Row) -> dict[str, str]:
    return dict(word.split("=", 1) for word in log_line(each, 0.0).split(" ") if "=" in word)


def test_an_answer_shows_who_what_where_and_how_long() -> None:
    assert log_line(row(), 1_700_000_000.0) == (
        "2023-11-14T22:15:00.000+00:00 request id=req-1 route=/v1/chat/completions model=chat class=interactive "
        "tenant=default status=200 outcome=ok replica=chat-0 attempts=1 prompt_tokens=100 output_tokens=30 "
        "total_ms=3000.0 connect_ms=10.0 first_token_ms=490.0 answer_ms=2500.0"
    )


def test_a_refusal_shows_its_reason_and_what_it_waited_for() -> None:
    shown = pairs(unsent(refused=Reason.QUEUE_TIMEOUT, waited_for=Reason.LIMIT, queued_at=100.0, status=503))
    assert (shown["reason"], shown["waited_for"], shown["queue_ms"]) == ("queue_timeout", "limit", "3000.0")
    assert "outcome" not in shown


def test_text_from_the_client_cannot_add_a_pair_or_a_line() -> None:
    line = log_line(row(request_id='x status=500\n"forged"', tenant=""), 0.0)
    assert "\n" not in line
    assert "id=x_status_500__forged_ " in line
    assert "tenant" not in line
