"""A stream as the load generator reads it: which events bring a part of the answer.

Most events differ in nothing but their text, so one search for the key that stands before it decides. What else an
answer says, its finish reason, its usage, its end, stands in its last events, and is looked for once they are there.
"""

from __future__ import annotations

import re
from collections import deque
from typing import NamedTuple

from tidegate.wire.chunks import chunk_of, data_of
from tidegate.wire.header_names import OUTPUT
from tidegate.wire.sse import COMPLETION_TOKENS, PROMPT_TOKENS, usage_count

_PART = re.compile(
    rb'"(?:content|text|reasoning_content|reasoning|refusal)"\s*:\s*"(?!")'
    rb'|"tool_calls"\s*:\s*\[\s*\{|"function_call"\s*:\s*\{'
)
"""Inside a JSON string every quote is escaped, so nothing that a model wrote looks like one of these keys."""
_FINISH = re.compile(rb'"finish_reason"\s*:\s*"([^"\\]*)"')
_ERROR = re.compile(rb'(?:^|\n)(?:event: ?error\r?\n|data: ?\{\s*"error"\s*:(?!\s*null))')
_LABEL = re.compile(rb"(?:^|\n): ?%b: ?([a-z_]+)" % OUTPUT)
_CONTINUED = b": tidegate continued on "
_CACHED_TOKENS = b'"cached_tokens"'
_DONE = re.compile(rb"^data: ?\[DONE\]\s*$")
KEPT_EVENTS = 8
"""Of those without a part of the answer: finish reason, usage, error and end are among the last of them."""


class Usage(NamedTuple):
    """Tokens as the engine counted them."""

    prompt: int
    cached: int
    """Of the prompt's, those from the prefix cache."""
    output: int


class AnswerScan:
    """One stream. The result does not depend on where reads split the bytes."""

    __slots__ = (
        "_key",
        "_last",
        "_others",
        "_unfinished",
        "continuations",
        "error",
        "is_garbled",
        "kept",
        "label",
        "parts",
    )

    def __init__(self, *, keeps_text: bool = False) -> None:
        self.parts = 0
        """Events with a part of the answer."""
        self.error = b""
        """The event that says what went wrong; empty: none came."""
        self.continuations = 0
        """How often the gateway says that another replica goes on."""
        self.is_garbled = False
        """An event is no JSON or no UTF-8."""
        self.label = ""
        """What the gateway says is wrong with the answer, in a comment at its end."""
        self.kept: list[bytes] | None = [] if keeps_text else None
        self._key = b'"content":"'
        """What stood before the last part, up to its text."""
        self._last = b""
        self._others: deque[bytes] = deque(maxlen=KEPT_EVENTS)
        self._unfinished = b""

    def feed(self, piece: bytes) -> int:
        """Take one read; how many events with a part of the answer became complete in it."""
        if self._unfinished:
            piece = self._unfinished + piece
        if piece.find(b"\r") >= 0:
            piece = piece.replace(b"\r\n", b"\n")
        if piece.endswith(b"}\n\n") and piece.find(b"\n\n") == len(piece) - 2:
            # The usual read: one event that ends as JSON does.
            self._unfinished = b""
            return self._take(piece)
        *events, self._unfinished = piece.split(b"\n\n")
        count = 0
        for event in events:
            if event:
                self._check_end(event)
                count += self._take(event)
        return count

    @property
    def is_done(self) -> bool:
        """The last event is ``[DONE]``; comments do not count."""
        return bool(self._others) and _DONE.match(self._others[-1]) is not None

    @property
    def finish_reason(self) -> str:
        for event in (*reversed(self._others), self._last):
            found = _FINISH.search(event)
            if found is not None:
                return found[1].decode("utf-8", "replace")
        return ""

    @property
    def usage(self) -> Usage | None:
        """None: the engine did not say."""
        for event in (*reversed(self._others), self._last):
            output = usage_count(event, COMPLETION_TOKENS)
            if output is not None:
                prompt, cached = usage_count(event, PROMPT_TOKENS), usage_count(event, _CACHED_TOKENS)
                return Usage(prompt or 0, cached or 0, output)
        return None

    @property
    def text(self) -> str:
        """Content alone, without reasoning and tool calls; of a stream whose text is kept. Raises
        ``msgspec.DecodeError`` for an event that is no chunk."""
        said: list[str] = []
        for event in self.kept or ():
            for choice in chunk_of(data_of(event) or b"{}").choices:
                delta = choice.delta
                said.append((choice.text if delta is None else delta.content) or "")
        return "".join(said)

    def _take(self, event: bytes) -> int:
        if not event.isascii():
            self._check_utf8(event)
        key = self._key
        at = event.find(key)
        end = at + len(key)
        if at < 0 or event[end : end + 1] == b'"':
            return self._look(event.lstrip(b"\n"))
        self._last = event
        self.parts += 1
        if self.kept is not None:
            self.kept.append(event)
        return 1

    def _look(self, event: bytes) -> int:
        """At an event that is not as the last part was."""
        found = _PART.search(event)
        if found is not None and event.startswith((b"data:", b"event:", b"id:")):
            if found[0].endswith(b'"'):
                self._key = found[0]
            self._last = event
            self.parts += 1
            if self.kept is not None:
                self.kept.append(event)
            return 1
        self._note(event)
        return 0

    def _note(self, event: bytes) -> None:
        if event.find(b"error") >= 0 and not self.error and _ERROR.search(event) is not None:
            self.error = event
        found = _LABEL.search(event)
        if found is not None:
            self.label = found[1].decode()
        self.continuations += event.startswith(_CONTINUED)
        if not event.startswith(b":"):
            self._others.append(event)

    def _check_end(self, event: bytes) -> None:
        if event.startswith(b"data:") and not event.rstrip().endswith((b"}", b"[DONE]")):
            self.is_garbled = True

    def _check_utf8(self, event: bytes) -> None:
        try:
            event.decode()
        except UnicodeDecodeError:
            self.is_garbled = True
