"""Answers as a client reads them: bytes in, a head and pieces of body out."""

from __future__ import annotations

import httptools

from tidegate.errors import ProtocolError
from tidegate.wire.header_names import CONTENT_LENGTH, TRANSFER_ENCODING

LONGEST_HEAD_BYTES = 256 * 1024
"""Four times what we take from clients: an engine is trusted, a broken one not to end its head."""


def header_pairs(head: bytes) -> list[tuple[bytes, bytes]]:
    """Of a head that llhttp has accepted: names lower-case, in the order they came."""
    parts = [line.partition(b":") for line in head.split(b"\r\n")[1:]]
    return [(name.lower(), value.strip(b" \t")) for name, _, value in parts]


class ResponseReader:
    """One connection's parser; ``start`` before each answer, then ``feed`` it reads and look."""

    __slots__ = ("_parser", "_raw", "has_begun", "has_head", "head", "is_complete", "keeps_alive", "pieces", "status")

    def __init__(self) -> None:
        self._parser: httptools.HttpResponseParser | None = httptools.HttpResponseParser(self)
        self.start()

    def start(self) -> None:
        """Forget the last answer."""
        self.status = 0
        self.head = b""
        """The status line and the header lines as they came, without the empty line at their end."""
        self._raw = b""
        """What came of a head that is not complete yet."""
        self.pieces: list[bytes] = []
        """Body bytes not yet taken, chunk framing removed; the owner clears it."""
        self.has_begun = False
        """At least one byte came."""
        self.has_head = False
        self.is_complete = False
        self.keeps_alive = False
        """Valid once ``has_head``: the connection can carry another answer."""

    @property
    def headers(self) -> list[tuple[bytes, bytes]]:
        """Names lower-case, in the order they came."""
        return header_pairs(self.head)

    def close(self) -> None:
        """Break the cycle with the parser."""
        self._parser = None

    def feed(self, data: bytes) -> None:
        """Parse one read.

        Raises:
            ProtocolError: the bytes are no HTTP/1.1 answer.
        """
        if self._parser is None:
            return
        self.has_begun = True
        if not self.has_head:
            self._raw = self._raw + data if self._raw else data
            if len(self._raw) > LONGEST_HEAD_BYTES + len(data):
                raise ProtocolError(f"the head of the engine's answer is longer than {LONGEST_HEAD_BYTES} bytes", 502)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            raise ProtocolError(f"the engine's answer is not HTTP/1.1: {error}", 502) from None
        except httptools.HttpParserUpgrade:
            raise ProtocolError("the engine switched protocols unasked", 502) from None

    def finish(self) -> bool:
        """The connection ended; True when that was the proper end of this answer."""
        if self.has_head and not self.is_complete:
            framed = any(name in (CONTENT_LENGTH, TRANSFER_ENCODING) for name, _ in self.headers)
            self.is_complete = not framed
        return self.is_complete

    def on_headers_complete(self) -> None:
        parser = self._parser
        if parser is None:
            return
        status = parser.get_status_code()
        # llhttp has checked every line, so the head can be taken as it stands; a callback for each
        # line would cost as much as all the rest of the answer.
        head, _, rest = self._raw.partition(b"\r\n\r\n")
        if status < 200:
            self._raw = rest
            return
        self._raw = b""
        self.head = head
        self.status = status
        # After the end of the message llhttp has forgotten this.
        self.keeps_alive = parser.should_keep_alive()
        self.has_head = True

    def on_body(self, piece: bytes) -> None:
        self.pieces.append(piece)

    def on_message_complete(self) -> None:
        if self.has_head:
            self.is_complete = True
