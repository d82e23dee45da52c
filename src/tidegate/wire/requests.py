"""Requests as a server reads them: bytes in, whole requests out.

Strict, because this is a security boundary: two servers that disagree about where a request
ends can be made to mix up clients. llhttp already refuses Content-Length beside
Transfer-Encoding, repeated or odd lengths, bare line feeds and folded headers; what it lets
through is refused here.
"""

from __future__ import annotations

from collections import deque

import httptools

from tidegate.errors import ProtocolError
from tidegate.wire.header_names import (
    AUTHORIZATION,
    CONNECTION,
    CONTENT_LENGTH,
    CONTENT_TYPE,
    EXPECT,
    HOST,
    TRANSFER_ENCODING,
    X_REQUEST_ID,
)


class Incoming:
    """One request, complete. Header names are lower-case."""

    __slots__ = ("body", "fields", "headers", "is_http10", "keeps_alive", "method", "target")

    def __init__(self, method: bytes, target: bytes, headers: list[tuple[bytes, bytes]]) -> None:
        self.method = method
        self.target = target
        self.headers = headers
        self.fields = dict(headers)
        """Header values by name; of a repeated one the last."""
        self.body = b""
        self.keeps_alive = True
        """The client wants the connection to stay open."""
        self.is_http10 = False
        """The client can't read a chunked answer."""


class RequestReader:
    """One connection's parser. Feed it reads, take requests from ``ready``.

    Not usable after it raised: the place where the next request begins is lost.
    """

    __slots__ = (
        "_body",
        "_body_left",
        "_body_limit",
        "_head_fed",
        "_head_limit",
        "_headers",
        "_parser",
        "_plain_left",
        "_request",
        "_target",
        "awaits_continue",
        "is_partial",
        "ready",
    )

    def __init__(self, head_limit_bytes: int, body_limit_bytes: int) -> None:
        self._head_limit = head_limit_bytes
        self._body_limit = body_limit_bytes
        self._parser: httptools.HttpRequestParser | None = httptools.HttpRequestParser(self)
        self._plain_left = 0
        self._head_fed = 0
        self._body_left = body_limit_bytes
        self._target = b""
        self._headers: list[tuple[bytes, bytes]] = []
        self._body: list[bytes] = []
        self._request: Incoming | None = None
        self.ready: deque[Incoming] = deque()
        """Complete requests in order; the owner takes them out."""
        self.awaits_continue = False
        """The client waits for ``100 Continue`` before it sends its body; the owner resets it."""
        self.is_partial = False
        """A further request has begun and is not complete."""

    @property
    def has_head(self) -> bool:
        """The head of the request that is being read is complete."""
        return self._request is not None

    def close(self) -> None:
        """Break the cycle with the parser, so that the connection is freed without the collector."""
        self._parser = None

    def feed(self, data: bytes) -> None:
        """Parse one read.

        Raises:
            ProtocolError: the bytes are no acceptable HTTP/1.1; ``status`` is the answer to give.
        """
        if self._plain_left:
            data = self._take_plain(data)
        parser = self._parser
        if parser is None or not data:
            return
        if self._request is None:
            self._head_fed += len(data)
        try:
            parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self.feed(data[upgrade.args[0] :])
        except httptools.HttpParserCallbackError as error:
            # httptools hands on what a callback raised as the context of its own error.
            if isinstance(error.__context__, ProtocolError):
                raise error.__context__ from None
            raise
        except httptools.HttpParserError as error:
            # After a last request (Connection: close) whatever follows is none of our business.
            if self._parser is not None:
                raise ProtocolError(f"not a valid HTTP/1.1 request: {error}") from None
        if self._head_fed > self._head_limit and self._request is None:
            raise ProtocolError(f"the request's head is longer than {self._head_limit} bytes", 431)

    def on_url(self, piece: bytes) -> None:
        self._target += piece
        self.is_partial = True

    def on_header(self, name: bytes, value: bytes) -> None:
        # Trailers come here too; they must not become headers of the next request.
        if self._request is None:
            self._headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        parser = self._parser
        if parser is None:
            return
        request = Incoming(parser.get_method(), self._target, self._headers)
        # After the end of the message llhttp has forgotten this.
        request.keeps_alive = parser.should_keep_alive()
        if not request.keeps_alive or CONNECTION in request.fields:
            request.is_http10 = parser.get_http_version() == "1.0"
        self._target = b""
        self._headers = []
        self._request = request
        fields = request.fields
        if (
            len(fields) != len(request.headers)
            or HOST not in fields
            or self._head_fed > self._head_limit
            or self.ready
            or not UNUSUAL.isdisjoint(fields)
        ):
            self._check(request)
        if CONTENT_LENGTH in fields and int(fields[CONTENT_LENGTH]) > self._body_limit:
            self._refuse_body()

    def on_body(self, piece: bytes) -> None:
        self._body_left -= len(piece)
        if self._body_left < 0:
            self._refuse_body()
        self._body.append(piece)

    def on_message_complete(self) -> None:
        parser, request = self._parser, self._request
        if parser is None or request is None:
            return
        if parser.should_upgrade():
            if request.method == b"CONNECT":
                raise ProtocolError("this is not a proxy: CONNECT is not served", 405)
            # llhttp ends an upgrade request at its head; we don't upgrade, so the body is still to come.
            self._plain_left = int(request.fields.get(CONTENT_LENGTH, 0))
        if not self._plain_left:
            self._complete(request)

    def _check(self, request: Incoming) -> None:
        """Look closer at a head with something unusual in it."""
        fields = request.fields
        # Behind another request in the same read, nobody has counted this head's bytes.
        may_be_long = self._head_fed > self._head_limit or self.ready
        if may_be_long and _head_bytes(request) > self._head_limit:
            raise ProtocolError(f"the request's head is longer than {self._head_limit} bytes", 431)
        if len(fields) != len(request.headers):
            _check_repeated(request)
        if HOST not in fields and not request.is_http10:
            raise ProtocolError("an HTTP/1.1 request needs a Host header")
        if TRANSFER_ENCODING in fields:
            _check_transfer_encoding(request)
        if EXPECT in fields:
            if fields[EXPECT].lower() != b"100-continue":
                raise ProtocolError("the only expectation that can be met is 100-continue", 417)
            self.awaits_continue = True

    def _refuse_body(self) -> None:
        raise ProtocolError(f"the request's body is longer than {self._body_limit} bytes", 413)

    def _complete(self, request: Incoming) -> None:
        body = self._body
        if body:
            request.body = body[0] if len(body) == 1 else b"".join(body)
            self._body = []
        self._body_left = self._body_limit
        self._head_fed = 0
        self._request = None
        self.is_partial = self.awaits_continue = False
        self.ready.append(request)
        if not request.keeps_alive:
            self._parser = None

    def _take_plain(self, data: bytes) -> bytes:
        """Take the body of an upgrade request; what is left belongs to the next request."""
        piece, rest = data[: self._plain_left], data[self._plain_left :]
        self._plain_left -= len(piece)
        self._body.append(piece)
        if not self._plain_left and self._request is not None:
            self._complete(self._request)
        return rest


def _head_bytes(request: Incoming) -> int:
    return len(request.target) + sum(len(name) + len(value) + 4 for name, value in request.headers)


UNUSUAL = frozenset({EXPECT, TRANSFER_ENCODING})
ONCE_ONLY = (HOST, AUTHORIZATION, TRANSFER_ENCODING, CONTENT_TYPE, X_REQUEST_ID)


def _check_repeated(request: Incoming) -> None:
    given = [name for name, _ in request.headers]
    for name in ONCE_ONLY:
        if given.count(name) > 1:
            raise ProtocolError(f"header {name.decode()} is given more than once")


def _check_transfer_encoding(request: Incoming) -> None:
    if request.is_http10:
        raise ProtocolError("an HTTP/1.0 request can't be chunked")
    if request.fields[TRANSFER_ENCODING].strip().lower() != b"chunked":
        raise ProtocolError("the only transfer encoding served is chunked", 501)
    if CONTENT_LENGTH in request.fields:
        raise ProtocolError("Content-Length and Transfer-Encoding exclude each other")
    if b"upgrade" in request.fields.get(CONNECTION, b"").lower():
        raise ProtocolError("an upgrade request can't be chunked")
