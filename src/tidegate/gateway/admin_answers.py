"""How the admin port answers, and how it names who asked."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response


@dataclass(slots=True)
class Reloaded:
    """What became of a reload, or of a change. ``problems`` empty: the new configuration is in force."""

    changes: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


class AdminAnswer(Response):
    """JSON with a line end, for people with curl."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        return msgspec.json.encode(content, enc_hook=str) + b"\n"


def error_answer(status: int, message: str, code: str, param: str | None = None) -> AdminAnswer:
    """An error in OpenAI's shape."""
    kind = "server_error" if status >= 500 else "invalid_request_error"
    return AdminAnswer({"error": {"message": message, "type": kind, "param": param, "code": code}}, status)


def outcome_answer(reloaded: Reloaded, *, is_dry: bool) -> AdminAnswer:
    """What became of a change: 422 when it was refused."""
    plain = {
        "applied": not reloaded.problems and not is_dry,
        "changes": reloaded.changes,
        "problems": reloaded.problems,
    }
    return AdminAnswer(plain, 422 if reloaded.problems else 200)


def who_asks(request: Request) -> str:
    """For the audit: from where, and with which token (the first digits of its SHA-256, as the file has it)."""
    where = request.client.host if request.client is not None else "unknown address"
    token = request.headers.get("authorization", "").partition(" ")[2].strip()
    named = f", token {hashlib.sha256(token.encode()).hexdigest()[:8]}" if token else ""
    return f"admin API, {where}{named}"
