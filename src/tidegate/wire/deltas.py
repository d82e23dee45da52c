"""The text in an engine's answer: of many chunks of a stream at a time, or of a whole answer."""

from __future__ import annotations

import re

import msgspec

from tidegate.errors import ProtocolError

_CONTENT = re.compile(rb'"(?:content|text)":\s*"((?:[^"\\]|\\.)*+)"')
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
_text = msgspec.json.Decoder(str)
_parts = msgspec.json.Decoder(list[Part])


class Deltas:
    """Of one stream. Most of its events differ in nothing but their text: what stands around it is learned from one of
    them, and of the next only the text is read.

    That is never mistaken: an event of another form differs somewhere, or leaves a quote that is not escaped.
    """

    __slots__ = ("_after", "_before", "_between")

    def __init__(self) -> None:
        self._before = b""
        """What stands before the text of an event, up to its quote; empty: nothing is learned."""
        self._after = b""
        self._between = b""

    def read(self, events: bytes) -> str | list[Part]:
        """The text of complete events of the usual form, of choice 0; or the parts of any others. Raises
        ``ProtocolError``: one is no JSON in UTF-8."""
        before, after = self._before, self._after
        if before and events.startswith(before) and events.endswith(after):
            begin, end = len(before) - 6, 2 - len(after)
            texts = [each[begin:end] for each in events[6:-2].split(b"\n\ndata: ")]
            # Put together again and compared, which is cheaper than to look at what stands around each.
            if events == before + self._between.join(texts) + after:
                try:
                    return _text.decode(b'"%b"' % b"".join(texts))
                except msgspec.DecodeError:
                    pass  # other events are among them
        parts = parts_of(events)
        self._learn(events, parts)
        return parts

    def _learn(self, events: bytes, parts: list[Part]) -> None:
        """From the last event."""
        self._before = b""
        text = _usual_text(parts)
        if not text or not events.endswith(b"\n\n"):
            return
        at = events.rfind(b"\n\ndata: ")
        event = events if at < 0 else events[at + 2 :]
        found = _CONTENT.search(event)
        if found is None or not event.startswith(b"data: "):
            return
        if _text.decode(b'"%b"' % found[1]) == text:
            self._before, self._after = event[: found.start(1)], event[found.end(1) :]
            self._between = self._after + self._before


def _usual_text(parts: list[Part]) -> str | None:
    """Of the last part, if it is nothing but a piece of choice 0."""
    choices = parts[-1].choices if parts else None
    if choices is None or len(choices) != 1 or choices[0].index or choices[0].finish_reason is not None:
        return None
    said = choices[0].delta
    if said is None:
        return choices[0].text
    return None if said.has_other else said.content


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
