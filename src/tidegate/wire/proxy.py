"""Through a forward proxy: plain requests in absolute form, https through a CONNECT tunnel (RFC 9110 section 9.3.6)."""

from __future__ import annotations

import asyncio
import base64
import socket
from urllib.parse import unquote, urlsplit

DEFAULT_PORT = 3128
LONGEST_HEAD_BYTES = 16 * 1024


async def connect_through(proxy: str, host: str, port: int, *, tunnel: bool) -> socket.socket:
    """A non-blocking socket to ``proxy`` (``http://[user:password@]host:port``); with ``tunnel`` what is
    written to it reaches ``host:port``. The caller closes it. Raises OSError, also for a proxy that refuses.
    """
    parts = urlsplit(proxy)
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(parts.hostname, parts.port or DEFAULT_PORT, type=socket.SOCK_STREAM)
    family, kind, number, _, address = found[0]
    sock = socket.socket(family, kind, number)
    try:
        sock.setblocking(False)
        await loop.sock_connect(sock, address)
        if tunnel:
            await loop.sock_sendall(sock, _connect_request(proxy, host, port))
            await _check_tunnel(sock)
    except BaseException:
        sock.close()
        raise
    return sock


def proxy_authorization(proxy: str) -> str | None:
    """Value of the ``proxy-authorization`` header for a proxy URL with a user in it."""
    parts = urlsplit(proxy)
    if parts.username is None:
        return None
    secret = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return f"Basic {base64.b64encode(secret.encode()).decode()}"


def _connect_request(proxy: str, host: str, port: int) -> bytes:
    target = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    lines = [f"CONNECT {target} HTTP/1.1", f"host: {target}"]
    if secret := proxy_authorization(proxy):
        lines.append(f"proxy-authorization: {secret}")
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n"


async def _check_tunnel(sock: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        # Byte by byte: whatever follows the head belongs to TLS and must stay in the socket.
        byte = await loop.sock_recv(sock, 1)
        head += byte
        if not byte or len(head) > LONGEST_HEAD_BYTES:
            raise ConnectionError("the proxy gave no answer that could be understood")
    line = head.split(b"\r\n", 1)[0]
    if line.split(b" ", 2)[1:2] != [b"200"]:
        raise ConnectionRefusedError(f"the proxy refused the tunnel: {line.decode('latin-1')}")
