"""Rows for tests of the lens."""

from __future__ import annotations

from typing import Any

from tidegate.lens.row import Row
from tidegate.policy.outcomes import Outcome

ANSWERED: dict[str, Any] = {
    "id": 1,
    "request_id": "req-1",
    "route": "/v1/chat/completions",
    "status": 200,
    "code": "",
    "arrived_at": 100.0,
    "closed_at": 103.0,
    "body_bytes": 400,
    "upstream": "chat",
    "tenant": "default",
    "service_class": "interactive",
    "streaming": True,
    "first_arrived_at": 100.0,
    "admitted_at": 100.0,
    "sent_at": 100.01,
    "first_token_at": 100.5,
    "attempts": 1,
    "replica": "chat-0",
    "outcome": Outcome.OK,
    "prompt_tokens": 100,
    "estimated_tokens": 90,
    "is_prompt_told": True,
    "output_tokens": 30,
    "max_tokens": 64,
    "sequences": 1,
    "reserved_slots": 2,
}

UNSENT: dict[str, Any] = {
    "admitted_at": 0.0,
    "sent_at": 0.0,
    "first_token_at": 0.0,
    "attempts": 0,
    "replica": None,
    "outcome": None,
    "output_tokens": 0,
}
"""What differs in a request that was never sent."""


def row(**changes: Any) -> Row:
    """An answered request, with ``changes``."""
    return Row(**{**ANSWERED, **changes})


def unsent(**changes: Any) -> Row:
    """A request that never reached a replica, with ``changes``."""
    return row(**{**UNSENT, **changes})
