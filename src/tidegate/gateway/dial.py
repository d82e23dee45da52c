"""Opens connections to engines: plain, TLS, or through a forward proxy."""

from __future__ import annotations

import asyncio
import base64
import socket
from collections.abc import Callable
from urllib.parse import SplitResult, unquote, urlsplit

from tidegate.gateway.engine_connection import EngineConnection
from tidegate.gateway.settings import Endpoint
from tidegate.wire.tls import Tls

LONGEST_PROXY_HEAD_BYTES = 16 * 1024


class Dialer:
    """Keeps one TLS context per endpoint, since loading authorities costs some 10 ms."""

    def __init__(self) -> None:
        self._tls: dict[tuple[str | None, str | None], Tls] = {}

    async def __call__(self, endpoint: Endpoint, connection: Callable[[], EngineConnection]) -> EngineConnection:
        """Raises OSError, also for a failed TLS handshake or a proxy that refuses."""
        loop = asyncio.get_running_loop()
        tls = self._tls_of(endpoint) if endpoint.is_tls else None
        name = (endpoint.server_name or endpoint.host) if tls else None
        context = tls.context if tls else None
        if endpoint.proxy is None:
            _, made = await loop.create_connection(
                connection, endpoint.host, endpoint.port, ssl=context, server_hostname=name
            )
            return made
        sock = await _through_proxy(urlsplit(endpoint.proxy), endpoint)
        _, made = await loop.create_connection(connection, sock=sock, ssl=context, server_hostname=name)
        return made

    def _tls_of(self, endpoint: Endpoint) -> Tls:
        key = (endpoint.ca_file, endpoint.server_name)
        if key not in self._tls:
            self._tls[key] = Tls(*key)
        return self._tls[key]


async def _through_proxy(proxy: SplitResult, endpoint: Endpoint) -> socket.socket:
    """A socket to the proxy, for https already tunnelled to the engine (RFC 9110 section 9.3.6)."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(proxy.hostname, proxy.port or 3128, type=socket.SOCK_STREAM)
    family, kind, number, _, address = found[0]
    sock = socket.socket(family, kind, number)
    try:
        sock.setblocking(False)
        await loop.sock_connect(sock, address)
        if endpoint.is_tls:
            await loop.sock_sendall(sock, _connect_request(proxy, endpoint))
            await _check_tunnel(sock)
    except BaseException:
        sock.close()
        raise
    return sock


def _connect_request(proxy: SplitResult, endpoint: Endpoint) -> bytes:
    target = f"{endpoint.host}:{endpoint.port}"
    lines = [f"CONNECT {target} HTTP/1.1", f"host: {target}"]
    if proxy.username is not None:
        secret = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
        lines.append(f"proxy-authorization: Basic {base64.b64encode(secret.encode()).decode()}")
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n"


async def _check_tunnel(sock: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        # Byte by byte: whatever follows the head belongs to TLS and must stay in the socket.
        byte = await loop.sock_recv(sock, 1)
        head += byte
        if not byte or len(head) > LONGEST_PROXY_HEAD_BYTES:
            raise ConnectionError("the proxy gave no answer that could be understood")
    line = head.split(b"\r\n", 1)[0]
    if line.split(b" ", 2)[1:2] != [b"200"]:
        raise ConnectionRefusedError(f"the proxy refused the tunnel: {line.decode('latin-1')}")
