"""One answer on its way to a client: the head once, then a body in the framing the client can read."""

from __future__ import annotations

import asyncio
from http import HTTPStatus

from tidegate.wire.sse import HEARTBEAT

_STATUS_LINES = {status.value: b"HTTP/1.1 %d %b\r\n" % (status.value, status.phrase.encode()) for status in HTTPStatus}
_CLOSE = b"connection: close\r\n"
_KEEP = b"connection: keep-alive\r\n"
JSON_LINE = b"content-type: application/json\r\n"
STREAM_LINES = b"content-type: text/event-stream; charset=utf-8\r\ncache-control: no-cache\r\n"
BODILESS = (204, 304)
"""RFC 9112 section 6.3: these end with their head, and a length would be a lie or forbidden."""
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


def header_lines(headers: list[tuple[bytes, bytes]]) -> bytes:
    """The lines of ``headers``, each ended."""
    return b"".join([b"%b: %b\r\n" % header for header in headers])


class Reply:
    """Writes at once; knows nothing of what it carries."""

    __slots__ = ("_is_chunked", "_is_http10", "_transport", "has_head", "keeps_alive", "omits_body", "status")

    def __init__(self, transport: asyncio.Transport, is_http10: bool, keeps_alive: bool) -> None:
        self._transport = transport
        self._is_chunked = False
        self._is_http10 = is_http10
        self.keeps_alive = keeps_alive
        """The connection can carry another request after this answer."""
        self.omits_body = False
        """Answers HEAD."""
        self.has_head = False
        self.status = 0
        """0 until the head is sent."""

    def whole(self, status: int, headers: bytes, body: bytes) -> None:
        """Send everything in one write. ``headers``: ended lines, without length and connection."""
        framing = b"content-length: %d\r\n" % len(body) if body or status not in BODILESS else b""
        head = self._head(status, headers, framing)
        self._transport.write(head if self.omits_body else head + body)

    def open(self, status: int, headers: bytes, length: bytes | None, first: bytes) -> None:
        """Send the head and the first piece of a body of ``length`` bytes (decimal; None: not known yet)."""
        if status in BODILESS:
            self._transport.write(self._head(status, headers, b""))
        elif length is not None:
            self._transport.write(self._head(status, headers, b"content-length: %b\r\n" % length) + first)
        elif self._is_http10:
            # Such a client finds the end of the body only by the end of the connection.
            self.keeps_alive = False
            self._transport.write(self._head(status, headers, b"") + first)
        else:
            self._is_chunked = True
            head = self._head(status, headers, b"transfer-encoding: chunked\r\n")
            self._transport.write(b"%b%x\r\n%b\r\n" % (head, len(first), first) if first else head)

    def piece(self, data: bytes) -> None:
        """Send a further piece; ``data`` is not empty."""
        self._transport.write(b"%x\r\n%b\r\n" % (len(data), data) if self._is_chunked else data)

    def beat(self, headers: bytes) -> None:
        """Show that a stream lives though nothing has come; ``headers``: for the head, if that is not sent."""
        if self.has_head:
            self.piece(HEARTBEAT)
        else:
            self.open(200, STREAM_LINES + headers, None, HEARTBEAT)

    def end(self, last: bytes = b"") -> None:
        """Send what is left and end the body."""
        if last:
            self.piece(last)
        if self._is_chunked:
            self._transport.write(b"0\r\n\r\n")

    def break_off(self) -> None:
        """End the connection in the middle of a body, so that the client cannot take it for whole."""
        self.keeps_alive = False
        self._transport.abort()

    @property
    def unsent_bytes(self) -> int:
        """What the client has not taken yet."""
        return self._transport.get_write_buffer_size()

    def _head(self, status: int, headers: bytes, framing: bytes) -> bytes:
        self.has_head = True
        self.status = status
        line = _STATUS_LINES.get(status) or b"HTTP/1.1 %d \r\n" % status
        if not self.keeps_alive:
            framing += _CLOSE
        elif self._is_http10:
            framing += _KEEP
        return b"%b%b%b\r\n" % (line, headers, framing)
