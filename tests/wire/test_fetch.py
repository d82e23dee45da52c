from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from tidegate.errors import ConfigError, ProtocolError
from tidegate.wire.fetch import Reply, fetch
from tidegate.wire.tls import Tls


async def _against(answer: bytes, call: Callable[[str], Awaitable[Reply]]) -> tuple[Reply, bytes]:
    """Serve ``answer`` once on loopback; what was asked comes back beside the reply."""
    asked: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
    left = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.set_result(await reader.read(65536))
        writer.write(answer)
        writer.close()
        await writer.wait_closed()
        left.set()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        reply = await call(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        return reply, await asked
    finally:
        await left.wait()
        server.close()


def test_a_get_returns_status_headers_and_body() -> None:
    answer = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nhello"
    reply, asked = asyncio.run(_against(answer, lambda url: fetch(f"{url}/metrics?a=1", timeout_s=5)))
    assert reply == Reply(200, {"content-type": "text/plain", "content-length": "5"}, b"hello")
    assert asked.startswith(b"GET /metrics?a=1 HTTP/1.1\r\nhost: 127.0.0.1:")
    assert b"content-length" not in asked


def test_a_post_carries_its_body_and_headers() -> None:
    answer = b"HTTP/1.1 400 Bad\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"

    def call(url: str) -> Awaitable[Reply]:
        return fetch(url, method="POST", headers={"x-a": "b"}, body=b"{}", timeout_s=5)

    reply, asked = asyncio.run(_against(answer, call))
    assert (reply.status, reply.body) == (400, b"abcde")
    assert asked.endswith(b"content-length: 2\r\nx-a: b\r\n\r\n{}")


def test_an_unframed_body_ends_with_the_connection() -> None:
    reply, _ = asyncio.run(_against(b"HTTP/1.0 200 OK\r\n\r\nall of it", lambda url: fetch(url, timeout_s=5)))
    assert reply.body == b"all of it"


def test_an_interim_answer_is_skipped() -> None:
    answer = b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
    reply, _ = asyncio.run(_against(answer, lambda url: fetch(url, timeout_s=5)))
    assert reply == Reply(200, {"content-length": "2"}, b"ok")


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhe", "closed before"),
        (b"", "closed before"),
        (b"SSH-2.0-OpenSSH\r\n\r\n", "not HTTP/1.1"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\n" + b"x" * 50, "longer than 20"),
    ],
)
def test_a_broken_answer_is_a_protocol_error(answer: bytes, message: str) -> None:
    with pytest.raises(ProtocolError, match=message):
        asyncio.run(_against(answer, lambda url: fetch(url, timeout_s=5, limit_bytes=20)))


def test_a_silent_server_times_out() -> None:
    left = asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()
        await writer.wait_closed()
        left.set()

    async def main() -> None:
        server = await asyncio.start_server(silent, "127.0.0.1", 0)
        async with server:
            port = server.sockets[0].getsockname()[1]
            with pytest.raises(TimeoutError):
                await fetch(f"http://127.0.0.1:{port}/", timeout_s=0.05)
            await left.wait()

    asyncio.run(main())


def test_bad_urls_and_headers_are_refused_before_any_connection() -> None:
    with pytest.raises(ValueError, match="no http"):
        asyncio.run(fetch("ftp://host/", timeout_s=1))
    with pytest.raises(ValueError, match="line breaks"):
        asyncio.run(fetch("http://127.0.0.1/", headers={"a": "b\r\nc: d"}, timeout_s=1))


def test_an_unreadable_authority_file_says_what_to_do() -> None:
    with pytest.raises(ConfigError, match="give a readable PEM file"):
        Tls(ca_file="/nonexistent/ca.pem")
