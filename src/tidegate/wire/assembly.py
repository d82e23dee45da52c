"""A whole answer, put together from the stream of its chunks (OpenAI chat completions and completions)."""

from __future__ import annotations

from typing import Any

import msgspec

GROWING = frozenset({"content", "text", "reasoning_content"})
"""Strings that come in pieces; of every other value the last one stands."""

_object = msgspec.json.Decoder(dict[str, Any])


class Assembly:
    """Feed it the stream; the result does not depend on where reads split the bytes. Answers with tool calls
    are not its business: their pieces are joined by other rules."""

    __slots__ = ("_answer", "_choices", "_unfinished", "chunks", "is_done", "problem")

    def __init__(self) -> None:
        self._answer: dict[str, Any] = {}
        self._choices: dict[int, dict[str, Any]] = {}
        self._unfinished = b""
        self.chunks = 0
        """How many have come; about as many tokens."""
        self.is_done = False
        """``[DONE]`` has come."""
        self.problem = ""
        """Why there will be no answer: the engine's own error, or an event that is no chunk."""

    def feed(self, data: bytes) -> None:
        """Take one read."""
        *events, self._unfinished = (self._unfinished + data).split(b"\n\n")
        for event in events:
            if event.startswith(b"data:"):
                self._take(event[5:].strip())

    def body(self) -> bytes:
        """The answer, in the form in which the engine would have sent it whole."""
        for choice in self._choices.values():
            if choice.get("message", {}).get("content", "") is None:
                choice["message"]["content"] = ""
        kind = str(self._answer.get("object", "")).removesuffix(".chunk")
        choices = [self._choices[index] for index in sorted(self._choices)]
        return msgspec.json.encode({"choices": choices, **self._answer, "object": kind})

    def _take(self, text: bytes) -> None:
        if text == b"[DONE]":
            self.is_done = True
            return
        try:
            chunk = _object.decode(text)
        except msgspec.DecodeError as error:
            self.problem = f"an event of the engine's stream is no JSON object: {error}"
            return
        if chunk.get("error"):
            self.problem = text.decode("utf-8", "replace")
            return
        self.chunks += 1
        try:
            for choice in chunk.pop("choices", ()):
                self._add(choice)
        except (AttributeError, TypeError) as error:
            self.problem = f"an event of the engine's stream is no chunk of an answer: {error}"
        self._answer.update(chunk)

    def _add(self, choice: dict[str, Any]) -> None:
        kept = self._choices.setdefault(choice.get("index", 0), {})
        delta = choice.pop("delta", None)
        if delta is not None:
            _merge(kept.setdefault("message", {}), delta)
        _merge(kept, choice)


def _merge(kept: dict[str, Any], more: dict[str, Any]) -> None:
    for name, value in more.items():
        before = kept.get(name)
        if before is None:
            kept[name] = value
        elif isinstance(value, list):
            before.extend(value)
        elif isinstance(value, dict):
            _merge(before, value)
        elif name in GROWING and value is not None:
            kept[name] = before + value
        elif value is not None:
            kept[name] = value
