"""Under which key a finished answer may be served again: no other tenant's, no other question's."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import msgspec

from tidegate.gateway.call import Call
from tidegate.policy.request import Request

SAYS_NOTHING = frozenset({"user", "metadata", "store", "stream", "stream_options", "service_tier", "priority"})
"""Fields that change nothing about the answer's text."""
_sorted = msgspec.json.Encoder(order="sorted")


def answer_key(request: Request, call: Call, *, normalises: bool) -> bytes | None:
    """Equal for calls of one tenant that ask the same; None where no answer may be reused.

    Byte by byte unless ``normalises``: clients that repeat themselves do so in the same bytes, and reading JSON again
    costs more than most missed answers are worth.
    """
    if call.body is None or request.streaming or not call.route.is_known:
        return None
    body = call.incoming.body
    prefix = f"{request.tenant}\0{call.route.path}\0".encode()
    # Of the strong hashes the one that today's processors compute themselves.
    return sha256(prefix + (_normal(body) if normalises else body)).digest()


def _normal(body: bytes) -> bytes:
    fields = msgspec.json.decode(body)
    return _sorted.encode({name: _trimmed(value) for name, value in fields.items() if name not in SAYS_NOTHING})


def _trimmed(value: Any) -> Any:
    """Without spaces at the ends of texts, at any depth."""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, list):
        return [_trimmed(each) for each in value]
    if isinstance(value, dict):
        return {name: _trimmed(each) for name, each in value.items()}
    return value
