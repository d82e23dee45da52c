"""What an engine's answer or silence means, and how much of a failed answer a client is shown."""

from __future__ import annotations

import msgspec

from tidegate.gateway.relay import Relay
from tidegate.policy.outcomes import Outcome
from tidegate.policy.permit import Permit
from tidegate.wire.errors import FAILURES

_BUSY_WORDS = (b"busy", b"overload", b"capacity", b"queue", b"too many", b"no slot")
"""In the text of a 503: vLLM says "currently busy", llama.cpp "no slot available". A 503 without
any of them is an engine that cannot serve (llama.cpp: "Loading model")."""

SHOWN_CHARACTERS = 300
"""Of an error that an engine sent as text or HTML."""
MOST_READ_BYTES = 4 * SHOWN_CHARACTERS
"""A character of UTF-8 has four at most."""


def outcome_of(status: int, body: bytes, *, is_own_key: bool) -> Outcome:
    """``is_own_key``: the engine was sent our API key, not the client's."""
    if status < 400:
        return Outcome.OK
    if status in (429, 529) or (status == 503 and _is_busy(body)):
        return Outcome.PUSHBACK
    if status >= 500 or (status in (401, 403) and is_own_key):
        return Outcome.ENGINE_ERROR
    return Outcome.CLIENT_FAULT


def _is_busy(body: bytes) -> bool:
    text = body[:4096].lower()
    return any(word in text for word in _BUSY_WORDS)


def shown_error(status: int, body: bytes, outcome: Outcome) -> bytes:
    """The body in OpenAI's shape: the engine's own where it has that shape, else made from its text."""
    try:
        parsed = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        parsed = None
    if isinstance(parsed, dict) and isinstance(parsed.get("error"), dict) and _has_message(parsed["error"]):
        return body
    text = parsed.get("message") if isinstance(parsed, dict) else body[:MOST_READ_BYTES].decode("utf-8", "replace")
    detail = f"the engine answered {status}: {str(text or '')[:SHOWN_CHARACTERS]}"
    if outcome is Outcome.CLIENT_FAULT:
        error = {"message": detail, "type": "invalid_request_error", "param": None, "code": outcome.value}
        return msgspec.json.encode({"error": error})
    return FAILURES[outcome].body(outcome.value, detail)


def _has_message(error: dict[str, object]) -> bool:
    """The stock clients read it, and are not prepared for anything but a text."""
    return isinstance(error.get("message"), str)


def overdue(permit: Permit, relay: Relay | None, has_token: bool, now: float) -> Outcome | None:
    """Which of the attempt's three times has run out, if any."""
    if now >= permit.total_by:
        return Outcome.TOTAL_TIMEOUT
    if not has_token and (relay is None or relay.scan is not None):
        return Outcome.FIRST_BYTE_TIMEOUT if now >= permit.first_byte_by else None
    if relay is not None and now - relay.last_read_at >= permit.gap_s:
        return Outcome.GAP_TIMEOUT
    return None
