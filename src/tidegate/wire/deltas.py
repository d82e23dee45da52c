"""The text in an engine's answer: of many chunks of a stream at a time, or of a whole answer."""

from __future__ import annotations

import re

import msgspec

from tidegate.errors import ProtocolError

_EVENT_END = re.compile(rb"\r?\n\r?\n")


class Said(msgspec.Struct, gc=False):
    """A ``delta`` of a chunk, or the ``message`` of a whole answer."""

    content: str | None = None
    refusal: str | None = None
    tool_calls: list[msgspec.Raw] | None = None
    function_call: dict[str, msgspec.Raw] | None = None

    @property
    def has_other(self) -> bool:
        """A tool call or a refusal, or a part of one."""
        return bool(self.tool_calls or self.refusal or self.function_call)


class ChoicePart(msgspec.Struct, gc=False):
    """What one chunk, or a whole answer, says of one choice."""

    index: int = 0
    delta: Said | None = None
    message: Said | None = None
    text: str | None = None
    finish_reason: str | None = None


class Part(msgspec.Struct, gc=False):
    """A chunk, or a whole answer. An engine's error is one without choices."""

    choices: list[ChoicePart] | None = None


_part = msgspec.json.Decoder(Part)
_parts = msgspec.json.Decoder(list[Part])


def parts_of(events: bytes) -> list[Part]:
    """The chunks in complete server-sent events; heartbeats and ``[DONE]`` are none.

    One call decodes them all: an array is made of them first, which costs a tenth of decoding each alone.
    Raises ``ProtocolError``: one is no JSON in UTF-8. What is JSON of another shape has no parts.
    """
    if events.startswith(b"data: ") and events.endswith(b"\n\n"):
        # A line break can't stand inside a JSON string, so nothing but the ends of events is replaced.
        joined = b",".join(events[6:-2].removesuffix(b"\n\ndata: [DONE]").split(b"\n\ndata: "))
        try:
            return _parts.decode(b"[%b]" % joined)
        except (msgspec.DecodeError, RecursionError):
            pass  # one of them is unusual; which one is found below
    return [part for event in _EVENT_END.split(events) for part in _event_parts(event)]


def whole_part(body: bytes) -> Part | None:
    """A whole answer; None where it is JSON of another shape. Raises ``ProtocolError``: no JSON in UTF-8."""
    try:
        return _part.decode(body)
    except msgspec.ValidationError:
        return None
    except (msgspec.DecodeError, RecursionError) as error:
        raise ProtocolError(str(error)) from None


def _event_parts(event: bytes) -> list[Part]:
    lines = [line[5:].strip() for line in event.splitlines() if line.startswith(b"data:")]
    text = b"\n".join(lines)
    if not text or text == b"[DONE]":
        return []
    part = whole_part(text)
    return [] if part is None else [part]
