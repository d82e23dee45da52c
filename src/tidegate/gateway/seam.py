"""Joins the stream of a second replica to what a client has seen of the first.

The client has one answer before it, so the second stream's events get the first one's id, time and model name, no
second role, and a usage that counts the prompt once. Token ids that only the gateway asked for are left out.
"""

from __future__ import annotations

from typing import Any

import msgspec

from tidegate.gateway.transcript import Transcript
from tidegate.wire.chunks import DONE, data_of, events_in

_object = msgspec.json.Decoder(dict[str, Any])

OF_ONE_ATTEMPT = frozenset({"timings", "prompt_token_ids"})
"""Fields that tell about the second stream alone."""
ONLY_IDS = frozenset({"token_ids", "prompt_token_ids"})


class Seam:
    """Of one second (or third) stream. ``label``: the comment that says where it is from; ``is_chat``: what the
    client wants chunks of, whatever the replica was asked for."""

    __slots__ = ("_is_chat", "_label", "_transcript", "_written_tokens")

    def __init__(self, transcript: Transcript, label: bytes, *, is_chat: bool) -> None:
        self._transcript = transcript
        self._label = label
        self._is_chat = is_chat
        self._written_tokens = transcript.tokens
        """Before this stream."""

    def joined(self, events: bytes) -> bytes:
        """Complete events of the stream, as they go to the client; b"" when nothing of them does."""
        written = [self._event(event) for event in events_in(events)]
        label, self._label = self._label, b""
        return label + b"".join(written)

    def counted(self, prompt_tokens: int | None, output_tokens: int | None) -> tuple[int | None, int | None]:
        """A usage of the stream, as that of the whole answer."""
        written = self._written_tokens
        prompt_tokens = None if prompt_tokens is None else max(0, prompt_tokens - written)
        return prompt_tokens, None if output_tokens is None else output_tokens + written

    def _event(self, event: bytes) -> bytes:
        data = data_of(event)
        if data is None or data == DONE:
            return event + b"\n\n"
        try:
            chunk = _object.decode(data)
        except msgspec.DecodeError:
            return event + b"\n\n"
        return b"data: %b\n\n" % msgspec.json.encode(chunk) if self._rewrite(chunk) else b""

    def _rewrite(self, chunk: dict[str, Any]) -> bool:
        """False when nothing is left that the client does not have already."""
        first = self._transcript
        if first.id is not None:
            chunk["id"], chunk["created"], chunk["model"] = first.id, first.created, first.model
        for name in OF_ONE_ATTEMPT:
            chunk.pop(name, None)
        choices = chunk.get("choices")
        kept = [self._choice(choice) for choice in choices] if isinstance(choices, list) else []
        if self._is_chat and "object" in chunk:
            chunk["object"] = "chat.completion.chunk"
        if kept:
            chunk["choices"] = kept
        usage = chunk.get("usage")
        if isinstance(usage, dict):
            self._add_up(usage)
        return not kept or bool(usage) or any(_says_something(choice) for choice in kept)

    def _choice(self, choice: Any) -> Any:
        if not isinstance(choice, dict):
            return choice
        kept = {name: value for name, value in choice.items() if name not in ONLY_IDS}
        if self._is_chat and "delta" not in kept:
            text = kept.pop("text", None)
            kept["delta"] = {"content": text} if text else {}
        delta = kept.get("delta")
        if isinstance(delta, dict) and self._transcript.has_role:
            delta.pop("role", None)
            if not delta.get("content"):
                delta.pop("content", None)
        return kept

    def _add_up(self, usage: dict[str, Any]) -> None:
        prompt, output = self.counted(usage.get("prompt_tokens"), usage.get("completion_tokens"))
        usage["prompt_tokens"], usage["completion_tokens"] = prompt, output
        details = usage.get("prompt_tokens_details")
        if isinstance(details, dict) and isinstance(details.get("cached_tokens"), int) and prompt is not None:
            details["cached_tokens"] = min(details["cached_tokens"], prompt)


def _says_something(choice: Any) -> bool:
    if not isinstance(choice, dict) or choice.get("finish_reason") is not None:
        return True
    return bool(choice.get("delta") or choice.get("text"))
