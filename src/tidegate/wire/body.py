"""The few fields of a JSON body that decide something, and edits that leave the rest as it came."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from tidegate.errors import ProtocolError
from tidegate.wire.fields import Fields

CUT_ABOVE_BYTES = 64 * 1024
"""Bodies longer than this have their data URIs set aside before JSON is decoded: decoding holds
the loop for about 1 ms a megabyte, skipping to the end of a string hardly at all."""
SHORTEST_CUT_BYTES = 1024

_NO_MARKER = re.compile(rb"(?!)")
_IMAGE_PART = re.compile(rb'"type"\s*:\s*"(?:image_url|input_image|image)"')


_fields = msgspec.json.Decoder(Fields)
_object = msgspec.json.Decoder(dict[str, msgspec.Raw])
_texts = msgspec.json.Decoder(list[str])


class Body:
    """A JSON object as it came, and how much of a prompt is in it."""

    __slots__ = ("_cuts", "_marker", "_text", "fields", "images", "prompt_tokens", "prompts", "text_bytes")

    def __init__(self, text: bytes) -> None:
        """Raises ``ProtocolError`` (400) when ``text`` is no JSON object or a field has a wrong type."""
        self._cuts: list[bytes] = []
        """Data URIs set aside, in order."""
        self._marker = _NO_MARKER
        self._text = text
        if len(text) > CUT_ABOVE_BYTES:
            self._cut()
        if not text.isascii():
            _check_utf8(self._text)
        try:
            fields = self.fields = _fields.decode(self._text)
        except msgspec.DecodeError as error:
            raise ProtocolError(str(error)) from None
        except RecursionError:
            raise ProtocolError("values stand inside each other too deep") from None
        raw = bytes(fields.messages)
        self.text_bytes = len(raw)
        """JSON bytes of the prompt's text, all prompts together."""
        self.prompts = 1
        """Prompts in one call: a list of strings or of token lists has several."""
        self.prompt_tokens: int | None = None
        """Exact, where the client sent token ids; of all prompts together."""
        self.images = 0
        if not raw:
            self._measure_text(bytes(fields.prompt) or bytes(fields.input))
        elif raw.find(b"image") >= 0:
            # ``in`` makes and drops an exception for every bytes it looks for (CPython 3.11); ``find`` does not.
            self._measure_images(raw)

    @property
    def text(self) -> bytes:
        """The JSON, with a marker in the place of each long data URI."""
        return self._text

    def edited(self, changes: dict[str, Any]) -> bytes:
        """The body with ``changes`` written in, without fields whose change is ``UNSET``; every other value keeps its
        bytes."""
        if not changes:
            return self._restored(self._text)
        members: dict[str, Any] = _members(self._text)
        for name, value in changes.items():
            if value is msgspec.UNSET:
                members.pop(name, None)
            else:
                members[name] = msgspec.json.encode(value)
        return self._restored(_joined(members))

    def _measure_images(self, raw: bytes) -> None:
        if not self._cuts:
            raw = _without_data_uris(raw, b"", [])
        self.text_bytes = len(raw)
        self.images = len(_IMAGE_PART.findall(raw))

    def _measure_text(self, raw: bytes) -> None:
        """A string, a list of strings, a list of token ids, or a list of such lists."""
        self.text_bytes = len(raw)
        if not raw.startswith(b"["):
            return
        first = raw[1:].lstrip()[:1]
        if first == b'"':
            self.prompts = _strings_in(raw)
        elif first == b"[":
            self.prompts = raw.count(b"[") - 1
            self.prompt_tokens = raw.count(b",") + 1
        elif first.isdigit():
            self.prompt_tokens = raw.count(b",") + 1

    def _cut(self) -> None:
        # The marker must not occur in the text itself, or a client could move its own cuts about.
        marker = b"tidegate:cut:"
        while marker in self._text:
            marker += b":"
        self._marker = re.compile(b'"' + marker + rb'(\d+)"')
        self._text = _without_data_uris(self._text, marker, self._cuts)

    def _restored(self, text: bytes) -> bytes:
        if not self._cuts:
            return text
        cuts = self._cuts
        pieces = self._marker.split(text)
        pieces[1::2] = [cuts[int(number)] for number in pieces[1::2]]
        return b"".join(pieces)


def _without_data_uris(text: bytes, marker: bytes, cuts: list[bytes]) -> bytes:
    """``text`` with each long ``"data:…"`` string replaced by ``"{marker}{number}"``; those go to ``cuts``."""
    kept: list[bytes] = []
    start = 0
    at = text.find(b'"data:')
    while at >= 0:
        end = text.find(b'"', at + 6)
        if end < 0:
            break
        # After a backslash the quote belongs to the text: leave such strings to the decoder.
        is_plain = text[at - 1 : at] != b"\\" and text[end - 1 : end] != b"\\"
        if is_plain and end - at > SHORTEST_CUT_BYTES:
            kept += (text[start:at], b'"%b%d"' % (marker, len(cuts)))
            cuts.append(text[at : end + 1])
            start = end + 1
        at = text.find(b'"data:', end)
    kept.append(text[start:])
    return b"".join(kept)


def _check_utf8(text: bytes) -> None:
    """The decoder skips what it does not keep without looking at it, and would raise only when the body is edited."""
    try:
        text.decode()
    except UnicodeDecodeError as error:
        raise ProtocolError(f"it is not UTF-8: {error.reason} at byte {error.start}") from None


def _members(text: bytes) -> dict[str, Any]:
    members: dict[str, Any] = _object.decode(text)
    return members


def _joined(members: dict[str, Any]) -> bytes:
    return b"{%b}" % b",".join([b"%b:%b" % (msgspec.json.encode(name), raw) for name, raw in members.items()])


def _strings_in(raw: bytes) -> int:
    try:
        return len(_texts.decode(raw))
    except msgspec.DecodeError:
        return 1
