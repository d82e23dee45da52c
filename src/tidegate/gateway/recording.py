"""An answer that is kept instead of written, so that it can be had later, or by several."""

from __future__ import annotations

import re

from tidegate.gateway.reply import Reply
from tidegate.wire.header_names import CONTENT_TYPE, RATE_REQUESTS, RATE_TOKENS, X_REQUEST_ID
from tidegate.wire.sse import HEARTBEAT

_STREAM = b"text/event-stream"
_DONE = re.compile(rb"(?:^|\n)data: ?\[DONE\]\s*$")
_LAST = re.compile(rb"event: ?(?:response\.completed|message_stop)\r?\ndata:[^\n]*\s*$")
"""Of OpenAI's Responses and of Anthropic's Messages, which have no ``[DONE]``."""
_OWN = frozenset({X_REQUEST_ID, *RATE_REQUESTS, *RATE_TOKENS})
"""Header lines that belong to the call to which the answer was first given."""


class Recording(Reply):
    """Stands in for a ``Reply``; keeps at most ``most_bytes`` of the body, and nothing of a longer one."""

    __slots__ = (
        "_most_bytes",
        "_pieces",
        "is_broken",
        "is_over",
        "is_too_long",
        "is_whole",
        "length",
        "lines",
        "size_bytes",
    )

    def __init__(self, most_bytes: int) -> None:  # There is no transport to hand on to Reply.
        self.keeps_alive = True
        self.omits_body = False
        self.has_head = False
        self.status = 0
        self.lines = b""
        """Header lines, each ended, without length and connection."""
        self.length: bytes | None = None
        """Of a body that came in pieces, when it was known at its beginning."""
        self.is_whole = False
        """The body came at once, with its head."""
        self.is_over = False
        self.is_broken = False
        """It ended in the middle of the body."""
        self.is_too_long = False
        """The body passed ``most_bytes`` and was dropped."""
        self.size_bytes = 0
        """Of the body that is kept."""
        self._most_bytes = most_bytes
        self._pieces: list[bytes] = []

    # ---- as a Reply -------------------------------------------------------------------------

    def whole(self, status: int, headers: bytes, body: bytes) -> None:
        """Part of ``Reply``."""
        self._begin(status, headers, body)
        self.is_whole = self.is_over = True

    def open(self, status: int, headers: bytes, length: bytes | None, first: bytes) -> None:
        """Part of ``Reply``."""
        self.length = length
        self._begin(status, headers, first)

    def piece(self, data: bytes) -> None:
        """Part of ``Reply``."""
        self._keep(data)

    def end(self, last: bytes = b"") -> None:
        """Part of ``Reply``."""
        self._keep(last)
        self.is_over = True

    def break_off(self) -> None:
        """Part of ``Reply``."""
        self.is_over = self.is_broken = True

    @property
    def unsent_bytes(self) -> int:
        """Part of ``Reply``."""
        return 0

    def _begin(self, status: int, headers: bytes, first: bytes) -> None:
        self.status, self.lines, self.has_head = status, headers, True
        self._keep(first)

    def _keep(self, data: bytes) -> None:
        # A heartbeat tells those who wait now that they wait; later it says nothing.
        if not data or data == HEARTBEAT or self.is_too_long:
            return
        self.size_bytes += len(data)
        if self.size_bytes > self._most_bytes:
            self.is_too_long, self.size_bytes = True, 0
            self._pieces.clear()
        else:
            self._pieces.append(data)

    # ---- what was kept ----------------------------------------------------------------------

    @property
    def body(self) -> bytes:
        """What is kept of the body."""
        if len(self._pieces) > 1:
            self._pieces = [b"".join(self._pieces)]
        return self._pieces[0] if self._pieces else b""

    @property
    def is_complete(self) -> bool:
        """It is over, and nothing is missing. Of a stream the last event must be the one that ends it: one that was
        cut, or ended with an error, has none."""
        if not self.is_over or self.is_broken or self.is_too_long:
            return False
        if self.is_whole or not self.is_stream:
            return True
        body = self.body
        # Inside an event's JSON there is no line that begins with "event:", but the word may stand there: then the
        # answer passes for incomplete, which costs a repeat and never tells a lie.
        at = body.rfind(b"event:")
        return _DONE.search(body, max(0, len(body) - 64)) is not None or (at >= 0 and _LAST.match(body, at) is not None)

    @property
    def is_stream(self) -> bool:
        """It consists of server-sent events."""
        return self.field(CONTENT_TYPE).startswith(_STREAM)

    def field(self, name: bytes) -> bytes:
        """The value of a header by its lower-case name; empty when there is none."""
        for line in self.lines.split(b"\r\n"):
            known, _, value = line.partition(b":")
            if known.lower() == name:
                return value.strip()
        return b""

    def play(self, reply: Reply, lines: bytes) -> None:
        """Say to ``reply`` what was said so far, under ``lines``."""
        if self.is_whole:
            reply.whole(self.status, lines, self.body)
        elif self.has_head:
            reply.open(self.status, lines, self.length, self.body)
            if self.is_over:
                reply.end()


def others(lines: bytes) -> bytes:
    """``lines`` without those that belong to one call alone."""
    kept = [line for line in lines.split(b"\r\n") if line.partition(b":")[0].lower() not in _OWN]
    return b"\r\n".join(kept)
