"""Answers as a client reads them: bytes in, a head and pieces of body out."""

from __future__ import annotations

import httptools

from tidegate.errors import ProtocolError
from tidegate.wire import header_names as names


class ResponseReader:
    """One connection's parser; ``start`` before each answer, then ``feed`` it reads and look."""

    __slots__ = ("_parser", "has_begun", "has_head", "headers", "is_complete", "keeps_alive", "pieces", "status")

    def __init__(self) -> None:
        self._parser: httptools.HttpResponseParser | None = httptools.HttpResponseParser(self)
        self.start()

    def start(self) -> None:
        """Forget the last answer."""
        self.status = 0
        self.headers: list[tuple[bytes, bytes]] = []
        """Names lower-case, in the order they came."""
        self.pieces: list[bytes] = []
        """Body bytes not yet taken, chunk framing removed; the owner clears it."""
        self.has_begun = False
        """At least one byte came."""
        self.has_head = False
        self.is_complete = False
        self.keeps_alive = False
        """Valid once ``has_head``: the connection can carry another answer."""

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
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            raise ProtocolError(f"the engine's answer is not HTTP/1.1: {error}", 502) from None
        except httptools.HttpParserUpgrade:
            raise ProtocolError("the engine switched protocols unasked", 502) from None

    def finish(self) -> bool:
        """The connection ended; True when that was the proper end of this answer."""
        if self.has_head and not self.is_complete:
            framed = any(name in (names.CONTENT_LENGTH, names.TRANSFER_ENCODING) for name, _ in self.headers)
            self.is_complete = not framed
        return self.is_complete

    def on_header(self, name: bytes, value: bytes) -> None:
        # Trailers come here too.
        if not self.has_head:
            self.headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        parser = self._parser
        if parser is None:
            return
        status = parser.get_status_code()
        if status < 200:
            self.headers = []
            return
        self.status = status
        # After the end of the message llhttp has forgotten this.
        self.keeps_alive = parser.should_keep_alive()
        self.has_head = True

    def on_body(self, piece: bytes) -> None:
        self.pieces.append(piece)

    def on_message_complete(self) -> None:
        if self.has_head:
            self.is_complete = True
