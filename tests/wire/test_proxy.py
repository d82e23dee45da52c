from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from tidegate.wire.proxy import connect_through, proxy_authorization

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def _with_proxy(serve: Serve, call: Callable[[str], Awaitable[bytes]]) -> bytes:
    served = asyncio.Event()

    async def once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await serve(reader, writer)
        writer.close()
        await writer.wait_closed()
        served.set()

    server = await asyncio.start_server(once, "127.0.0.1", 0)
    try:
        return await call(f"http://u:p@127.0.0.1:{server.sockets[0].getsockname()[1]}")
    finally:
        await served.wait()
        server.close()


async def _tunnel(proxy: str, host: str = "engine.example") -> bytes:
    sock = await connect_through(proxy, host, 443, tunnel=True)
    try:
        return await asyncio.get_running_loop().sock_recv(sock, 1024)
    finally:
        sock.close()


def test_a_tunnel_begins_after_the_proxys_head_and_loses_no_byte() -> None:
    asked: list[bytes] = []

    async def proxy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 200 Connection established\r\nvia: x\r\n\r\nfirst bytes")

    assert asyncio.run(_with_proxy(proxy, _tunnel)) == b"first bytes"
    assert asked[0].startswith(b"CONNECT engine.example:443 HTTP/1.1\r\nhost: engine.example:443\r\n")
    assert b"\r\nproxy-authorization: Basic dTpw\r\n" in asked[0]


def test_an_ipv6_address_stands_in_brackets() -> None:
    asked: list[bytes] = []

    async def proxy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 200 x\r\n\r\n.")

    asyncio.run(_with_proxy(proxy, lambda url: _tunnel(url, "2001:db8::1")))
    assert asked[0].startswith(b"CONNECT [2001:db8::1]:443 HTTP/1.1\r\n")


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", "refused the tunnel: HTTP/1.1 407"),
        (b"SSH-2.0\r\n\r\n", "refused the tunnel"),
        (b"HTTP/1.1 200 x\r\n", "no answer that could be understood"),
        (b"x" * 20_000, "no answer that could be understood"),
    ],
)
def test_a_proxy_that_gives_no_tunnel_is_a_connection_error(answer: bytes, words: str) -> None:
    async def proxy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)

    with pytest.raises(ConnectionError, match=words):
        asyncio.run(_with_proxy(proxy, _tunnel))


def test_a_proxy_without_a_user_needs_no_authorization() -> None:
    assert proxy_authorization("http://proxy.example:8080") is None
    assert proxy_authorization("http://user@proxy.example") == "Basic dXNlcjo="
