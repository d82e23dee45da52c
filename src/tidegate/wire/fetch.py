"""One small HTTP request for the control plane: readings, health, tokenizers.

A connection per call, closed at the end. Never used on the request path.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

import httptools

from tidegate.errors import ProtocolError
from tidegate.wire.proxy import connect_through, proxy_authorization
from tidegate.wire.tls import Tls

READ_BYTES = 65536


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole answer. ``headers`` has lower-case names; of a repeated one the last stays."""

    status: int
    headers: dict[str, str]
    body: bytes


async def fetch(  # noqa: PLR0913 - all but the URL and the time are optional
    url: str,
    *,
    method: str = "GET",
    headers: dict[str, str] | None = None,
    body: bytes = b"",
    timeout_s: float,
    tls: Tls | None = None,
    limit_bytes: int = 16 << 20,
    proxy: str | None = None,
) -> Reply:
    """Send one request and read the whole answer, whatever its status.

    ``timeout_s`` bounds everything from the name look-up to the last byte. ``tls`` is used for
    https URLs; without it the system's authorities are loaded for each call. ``proxy`` is the URL of a
    forward proxy to go through.

    Raises:
        ValueError: the URL isn't http or https, or names no host.
        TimeoutError: no complete answer within ``timeout_s``.
        OSError: the connection failed (a TLS failure too).
        ProtocolError: the answer isn't HTTP/1.1, is cut short or passes ``limit_bytes``.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{url!r} is no http:// or https:// URL with a host")
    async with asyncio.timeout(timeout_s):
        request = _request_bytes(parts, method, _with_proxy(headers or {}, parts, proxy), body, proxy)
        reader, writer = await _connect(parts, tls, proxy)
        return await _exchange(reader, writer, request, limit_bytes)


def _with_proxy(headers: dict[str, str], parts: SplitResult, proxy: str | None) -> dict[str, str]:
    secret = None if proxy is None or parts.scheme == "https" else proxy_authorization(proxy)
    return headers if secret is None else {**headers, "proxy-authorization": secret}


async def _connect(
    parts: SplitResult, tls: Tls | None, proxy: str | None
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    host = parts.hostname or ""
    secure = parts.scheme == "https"
    port = parts.port or (443 if secure else 80)
    checked = (tls or Tls()) if secure else None
    context = checked.context if checked else None
    name = (checked.server_name or host) if checked else None
    if proxy is None:
        return await asyncio.open_connection(host, port, ssl=context, server_hostname=name)
    sock = await connect_through(proxy, host, port, tunnel=secure)
    return await asyncio.open_connection(sock=sock, ssl=context, server_hostname=name)


async def _exchange(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes, limit_bytes: int
) -> Reply:
    try:
        writer.write(request)
        await writer.drain()
        return await _read_reply(reader, limit_bytes)
    finally:
        writer.close()


def _request_bytes(parts: SplitResult, method: str, headers: dict[str, str], body: bytes, proxy: str | None) -> bytes:
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    host = parts.netloc.rpartition("@")[2]
    if proxy is not None and parts.scheme == "http":
        # A forward proxy wants the absolute form; https goes through a tunnel and does not.
        target = f"http://{host}{target}"
    lines = [f"{method} {target} HTTP/1.1", f"host: {host}", "connection: close"]
    if body or method != "GET":
        lines.append(f"content-length: {len(body)}")
    lines += [f"{name}: {value}" for name, value in headers.items()]
    if any("\r" in line or "\n" in line for line in lines):
        raise ValueError(f"line breaks in the URL or headers of {method} {target!r}")
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body


class _Answer:
    """Collects what llhttp calls back."""

    def __init__(self, limit_bytes: int) -> None:
        self.parser: httptools.HttpResponseParser = httptools.HttpResponseParser(self)
        self.headers: dict[str, str] = {}
        self.pieces: list[bytes] = []
        self.left_bytes = limit_bytes
        self.status = 0
        self.is_complete = False

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers[name.decode("latin-1").lower()] = value.decode("latin-1").strip()

    def on_headers_complete(self) -> None:
        self.status = self.parser.get_status_code()

    def on_body(self, piece: bytes) -> None:
        self.left_bytes -= len(piece)
        self.pieces.append(piece)

    def on_message_complete(self) -> None:
        # An interim 1xx head is no answer: the real one follows on the same connection.
        if self.status >= 200:
            self.is_complete = True
        else:
            self.headers.clear()

    def ends_with_connection(self) -> bool:
        framed = "content-length" in self.headers or "transfer-encoding" in self.headers
        return self.status >= 200 and not framed


async def _read_reply(reader: asyncio.StreamReader, limit_bytes: int) -> Reply:
    answer = _Answer(limit_bytes)
    while not answer.is_complete:
        piece = await reader.read(READ_BYTES)
        if not piece:
            if answer.ends_with_connection():
                break
            raise ProtocolError("the connection closed before the answer was complete", 502)
        try:
            answer.parser.feed_data(piece)
        except httptools.HttpParserError as error:
            raise ProtocolError(f"the answer is not HTTP/1.1: {error}", 502) from error
        if answer.left_bytes < 0:
            raise ProtocolError(f"the answer is longer than {limit_bytes} bytes", 502)
    return Reply(answer.status, answer.headers, b"".join(answer.pieces))
