"""Chunks of a streamed answer (OpenAI chat completions and completions): read, and taken out of their events."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec


class Delta(msgspec.Struct):
    """What a chunk of a chat adds."""

    role: str | None = None
    content: str | None = None
    reasoning_content: Any = None
    reasoning: Any = None
    tool_calls: Any = None
    function_call: Any = None
    refusal: Any = None

    @property
    def has_more_than_text(self) -> bool:
        """Reasoning, a call of a tool or a refusal: what cannot be given back as the text of an answer."""
        return bool(self.reasoning_content or self.reasoning or self.tool_calls or self.function_call or self.refusal)


class Choice(msgspec.Struct):
    """One answer's part of a chunk."""

    index: int = 0
    delta: Delta | None = None
    text: str | None = None
    """Of a completion that is no chat."""
    finish_reason: str | None = None
    token_ids: list[int] | None = None
    """vLLM's, where ``return_token_ids`` asked for them."""
    prompt_token_ids: list[int] | None = None
    """In the first chunk of a completion; a chat has them beside its choices."""


class Chunk(msgspec.Struct):
    """The fields that matter; an engine's others are not looked at."""

    id: str | None = None
    created: int | None = None
    model: str | None = None
    choices: list[Choice] = []
    prompt_token_ids: list[int] | None = None
    usage: Any = None


DONE = b"[DONE]"

chunk_of = msgspec.json.Decoder(Chunk).decode
"""Raises ``msgspec.DecodeError`` for what is no chunk."""

_TOKEN_IDS = re.compile(
    rb',\s*"(?:prompt_)?token_ids"\s*:\s*(?:\[[\d,\s]*\]|null)|"(?:prompt_)?token_ids"\s*:\s*(?:\[[\d,\s]*\]|null)\s*,?'
)


def events_in(text: bytes) -> Iterator[bytes]:
    """The events of ``text``, which ends with one; without the empty lines between them."""
    # A regular expression would take twenty times as long; in JSON no carriage return stands as it is.
    if text.find(b"\r") >= 0:
        text = text.replace(b"\r\n", b"\n")
    return (event for event in text.split(b"\n\n") if event)


def data_of(event: bytes) -> bytes | None:
    """What an event carries; None for a comment and for an event without data."""
    if event.startswith(b"data:") and event.find(b"\n") < 0:
        return event[5:].strip()
    lines = [line[5:].strip() for line in event.splitlines() if line.startswith(b"data:")]
    return b"\n".join(lines) if lines else None


def without_token_ids(events: bytes) -> bytes:
    """``events`` as they would be if nobody had asked for token ids. In a JSON string every quote is escaped, so
    nothing that a model wrote looks like the name of a field."""
    return _TOKEN_IDS.sub(b"", events) if events.find(b"token_ids") >= 0 else events
