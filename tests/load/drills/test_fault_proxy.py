"""The fault proxy on loopback, and its control port."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Awaitable, Callable

import msgspec
import pytest

from tidegate.load.drills.fault_proxy import FaultProxy, control, obey, serve
from tidegate.load.drills.impairment import Cut, Impairment, Pages
from tidegate.testing.openai_shapes import whole
from tidegate.wire.requests import Incoming

ASK = b"POST /v1/completions HTTP/1.1\r\nhost: a\r\nx-request-id: r\r\ncontent-length: 2\r\n\r\n{}"
ANSWER = whole(b"200 OK", b'{"ok": 1}')


async def answering(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A server that gives every read one answer, and ends with its client."""
    try:
        while await reader.read(65536):
            writer.write(ANSWER)
            await writer.drain()
    except OSError:
        return
    finally:
        writer.close()


async def behind_a_proxy(act: Callable[[FaultProxy, int], Awaitable[None]], *, has_server: bool = True) -> None:
    server = await asyncio.start_server(answering, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    if not has_server:
        server.close()
        await server.wait_closed()
    proxy = FaultProxy(f"http://127.0.0.1:{port}/v1")
    await proxy.start()
    try:
        await act(proxy, int(proxy.url.rsplit(":", 1)[1].removesuffix("/v1")))
    finally:
        await proxy.close()
        server.close()


def test_what_passes_is_unchanged_and_noted() -> None:
    async def act(proxy: FaultProxy, port: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(ASK)
        assert await reader.readexactly(len(ANSWER)) == ANSWER
        writer.write_eof()
        assert await reader.read() == b""
        writer.close()
        assert proxy.answered == {"r": 1}
        assert proxy.url.endswith("/v1")
        assert (proxy.level, proxy.accepted) == ("streams", 1)

    asyncio.run(behind_a_proxy(act))


def test_a_server_that_refuses_is_a_reset_for_the_client() -> None:
    async def act(_proxy: FaultProxy, port: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        with pytest.raises(ConnectionResetError):
            await reader.read()
        writer.close()

    asyncio.run(behind_a_proxy(act, has_server=False))


def test_a_black_hole_takes_everything_and_asks_nobody() -> None:
    async def act(proxy: FaultProxy, port: int) -> None:
        proxy.impair(Impairment(cut=Cut.BLACK_HOLE))
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(ASK)
        await writer.drain()
        writer.write_eof()
        assert await reader.read() == b""
        writer.close()
        assert not proxy.ledger.log
        proxy.heal()

    asyncio.run(behind_a_proxy(act))


def test_resets_are_seen_by_the_client_and_counted() -> None:
    async def act(proxy: FaultProxy, port: int) -> None:
        proxy.impair(Impairment(reset_share=1.0))
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(ASK)
        with pytest.raises(ConnectionResetError):
            await reader.read()
        writer.close()
        assert proxy.state()["resets"] == 1

    asyncio.run(behind_a_proxy(act))


def test_closing_ends_connections_that_are_open() -> None:
    async def act(proxy: FaultProxy, port: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(ASK)
        await reader.readexactly(len(ANSWER))
        await proxy.close()
        assert proxy.state()["open"] == 0
        assert await reader.read() == b""
        writer.close()

    asyncio.run(behind_a_proxy(act))


async def page_of(port: int, target: str) -> bytes:
    """The answer to one GET on a connection of its own."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET {target} HTTP/1.1\r\nhost: a\r\n\r\n".encode())
    writer.write_eof()
    answer = await reader.read()
    writer.close()
    return answer


def test_pages_freeze_fail_and_fall_silent_while_answers_go_on() -> None:
    async def act(proxy: FaultProxy, port: int) -> None:
        fresh = await page_of(port, "/metrics")
        assert fresh.endswith(b'{"ok": 1}')
        proxy.impair(Impairment(pages=Pages.FROZEN))
        frozen = await page_of(port, "/metrics")
        assert frozen.endswith(b'\r\n\r\n{"ok": 1}')
        assert frozen != fresh
        assert await page_of(port, "/never-asked") == fresh
        proxy.impair(Impairment(pages=Pages.FAILING))
        assert (await page_of(port, "/metrics")).startswith(b"HTTP/1.1 503")
        assert await page_of(port, "/health") == fresh
        proxy.impair(Impairment(pages=Pages.SILENT))
        assert await page_of(port, "/health") == b""
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(ASK)
        assert await reader.readexactly(len(ANSWER)) == ANSWER
        writer.close()

    asyncio.run(behind_a_proxy(act))


def order(method: bytes, target: bytes, body: bytes = b"") -> Incoming:
    incoming = Incoming(method, target, [])
    incoming.body = body
    return incoming


def test_the_control_port_takes_an_impairment_and_refuses_a_wrong_one() -> None:
    proxy = asyncio.run(made())
    status, body = obey(proxy, order(b"PUT", b"/impairment", b'{"delay_s": 0.5, "cut": "stall"}'))
    assert status == 200
    assert msgspec.json.decode(body)["impairment"]["cut"] == "stall"
    status, body = obey(proxy, order(b"PUT", b"/impairment", b'{"delays": 0.5}'))
    assert status == 400
    assert b"delays" in body
    assert obey(proxy, order(b"GET", b"/log")) == (200, b"[]")
    assert obey(proxy, order(b"GET", b"/state"))[0] == 200
    assert obey(proxy, order(b"GET", b"/other"))[0] == 404


async def made() -> FaultProxy:
    return FaultProxy("http://127.0.0.1:1")


def test_the_control_port_answers_over_http() -> None:
    async def main() -> tuple[bytes, bytes]:
        proxy = await made()
        server = await asyncio.start_server(lambda reader, writer: control(proxy, reader, writer), "127.0.0.1", 0)
        said = []
        for text in (b"GET /state HTTP/1.1\r\nhost: a\r\n\r\n", b"no http\r\n\r\n"):
            reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            writer.write(text)
            said.append(await reader.read())
            writer.close()
        server.close()
        return said[0], said[1]

    answer, nothing = asyncio.run(main())
    assert answer.startswith(b"HTTP/1.1 200")
    assert b'"accepted":0' in answer
    assert nothing == b""


class Page(io.StringIO):
    """Standard output that says when something stands on it."""

    def __init__(self) -> None:
        super().__init__()
        self.is_written = asyncio.Event()

    def write(self, text: str) -> int:
        self.is_written.set()
        return super().write(text)


def test_it_tells_where_it_is_before_it_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> str:
        page = Page()
        monkeypatch.setattr("sys.stdout", page)
        task = asyncio.create_task(serve(await made(), 0))
        await page.is_written.wait()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return page.getvalue()

    told = msgspec.json.decode(asyncio.run(main()))
    assert told["level"] == "streams"
    assert told["url"] != told["control"]
