"""Connections to engines over real loopback sockets: plain, TLS, through a proxy."""

from __future__ import annotations

import asyncio
import ssl
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tidegate.gateway.dial import Dialer
from tidegate.gateway.engine_connection import EngineConnection
from tidegate.gateway.settings import Endpoint
from tidegate.wire.responses import ResponseReader

ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Asker:
    def __init__(self) -> None:
        self.answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    def answer_read(self, reader: ResponseReader) -> None:
        """The rest is still to come."""

    def answer_complete(self, reader: ResponseReader) -> None:
        self.answer.set_result(b"".join(reader.pieces))

    def answer_lost(self, problem: str) -> None:
        self.answer.set_exception(ConnectionError(problem))


class Owner:
    def release(self, connection: EngineConnection) -> None:
        connection.close()

    def forget(self, connection: EngineConnection) -> None:
        """Nothing is kept."""


async def answer_once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.write(ANSWER)
    await reader.read()
    writer.close()
    await writer.wait_closed()


async def ask(endpoint: Endpoint) -> bytes:
    connection = await Dialer()(endpoint, lambda: EngineConnection(Owner()))
    asker = Asker()
    connection.send(asker, b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
    return await asyncio.wait_for(asker.answer, 10)


async def served(serve: Serve, use: Callable[[int], Awaitable[bytes]], tls: ssl.SSLContext | None = None) -> bytes:
    """Serve on a free port while ``use`` runs, and until every connection has ended."""
    ended: list[asyncio.Task[None]] = []

    async def noted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        ended.append(task)
        await serve(reader, writer)

    server = await asyncio.start_server(noted, "127.0.0.1", 0, ssl=tls)
    async with server:
        try:
            return await use(server.sockets[0].getsockname()[1])
        finally:
            await asyncio.wait_for(asyncio.gather(*ended, return_exceptions=True), 10)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("tls")
    key, cert = folder / "key.pem", folder / "cert.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-keyout", str(key), "-out", str(cert), "-days", "2", "-subj", "/CN=engine.example"]
    command += ["-addext", "subjectAltName=DNS:engine.example"]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("needs the openssl command to make a certificate")
    return key, cert


def context_of(certificate: tuple[Path, Path]) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate[1], certificate[0])
    return context


def test_a_plain_connection_carries_a_request() -> None:
    def use(port: int) -> Awaitable[bytes]:
        return ask(Endpoint(name="r", host="127.0.0.1", port=port))

    assert asyncio.run(served(answer_once, use)) == b"ok"


def test_nobody_there_is_an_os_error() -> None:
    async def main() -> bytes:
        server = await asyncio.start_server(answer_once, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        server.close()
        await server.wait_closed()
        return await ask(Endpoint(name="r", host="127.0.0.1", port=port))

    with pytest.raises(OSError, match=r"refused|Connect"):
        asyncio.run(main())


@pytest.mark.parametrize(
    ("name", "is_trusted"), [("engine.example", True), ("other.example", True), ("engine.example", False)]
)
def test_tls_checks_the_authority_and_the_name(name: str, is_trusted: bool, certificate: tuple[Path, Path]) -> None:
    def use(port: int) -> Awaitable[bytes]:
        ca_file = str(certificate[1]) if is_trusted else None
        return ask(Endpoint(name="r", host="127.0.0.1", port=port, is_tls=True, ca_file=ca_file, server_name=name))

    if name == "engine.example" and is_trusted:
        assert asyncio.run(served(answer_once, use, context_of(certificate))) == b"ok"
    else:
        with pytest.raises(OSError, match="certificate"):
            asyncio.run(served(answer_once, use, context_of(certificate)))


def test_https_goes_through_a_tunnel_that_the_proxy_opens(certificate: tuple[Path, Path]) -> None:
    asked: list[bytes] = []

    async def tunnel(port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 200 Connection established\r\nvia: p\r\n\r\n")
        there, back = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(pump(reader, back), pump(there, writer))

    async def through(port: int) -> bytes:
        def use(proxy_port: int) -> Awaitable[bytes]:
            proxy = f"http://user:pa%20ss@127.0.0.1:{proxy_port}"
            return ask(
                Endpoint(
                    name="r",
                    host="engine.example",
                    port=443,
                    is_tls=True,
                    ca_file=str(certificate[1]),
                    proxy=proxy,
                )
            )

        return await served(lambda reader, writer: tunnel(port, reader, writer), use)

    assert asyncio.run(served(answer_once, through, context_of(certificate))) == b"ok"
    assert asked[0].startswith(b"CONNECT engine.example:443 HTTP/1.1\r\nhost: engine.example:443\r\n")
    assert b"proxy-authorization: Basic dXNlcjpwYSBzcw==\r\n" in asked[0]


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
    writer.close()
    await writer.wait_closed()


@pytest.mark.parametrize("answer", [b"HTTP/1.1 403 No\r\n\r\n", b"", b"x" * 20_000])
def test_a_proxy_that_opens_no_tunnel_is_an_os_error(answer: bytes) -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        writer.close()
        await asyncio.gather(writer.wait_closed(), return_exceptions=True)

    def use(port: int) -> Awaitable[bytes]:
        return ask(Endpoint(name="r", host="e", port=443, is_tls=True, proxy=f"http://127.0.0.1:{port}"))

    with pytest.raises(OSError, match="proxy"):
        asyncio.run(served(refuse, use))


def test_plain_http_through_a_proxy_is_a_connection_to_the_proxy() -> None:
    def use(port: int) -> Awaitable[bytes]:
        return ask(Endpoint(name="r", host="engine.example", port=80, proxy=f"http://127.0.0.1:{port}"))

    assert asyncio.run(served(answer_once, use)) == b"ok"
