"""Connections over real loopback sockets: plain, TLS, and to a name with several addresses."""

from __future__ import annotations

import asyncio
import gc
import ssl
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.load.asks_of_a_test import ask
from tidegate.load.client_outcome import ClientOutcome
from tidegate.load.sample import Sample
from tidegate.load.sender import Sender
from tidegate.load.target import Target

BODY = b'{"choices":[{"message":{"content":"x"}}]}'
ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(BODY), BODY)


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while await reader.readline():
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        await reader.readexactly(length)
        writer.write(ANSWER)
    writer.close()


def served(
    use: Callable[[Sender], Awaitable[list[Sample]]],
    url: str = "http://127.0.0.1:{port}/v1",
    tls: ssl.SSLContext | None = None,
    ca_file: str | None = None,
) -> list[Sample]:
    """Serve on a free port of 127.0.0.1 while ``use`` runs."""

    async def main() -> list[Sample]:
        handled: list[asyncio.Task[None]] = []

        def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            handled.append(asyncio.ensure_future(answer(reader, writer)))

        server = await asyncio.start_server(take, "127.0.0.1", 0, ssl=tls)
        port = server.sockets[0].getsockname()[1]
        sender = Sender(Target(name="t", url=url.format(port=port), model="m", ca_file=ca_file), 0.0)
        async with server:
            try:
                return await use(sender)
            finally:
                await sender.close()
                await asyncio.wait_for(asyncio.gather(*handled, return_exceptions=True), 10)

    return asyncio.run(main())


async def twice(sender: Sender) -> list[Sample]:
    return [await sender.ask(ask(index, stream=False, patience_s=10.0)) for index in range(2)]


def test_a_connection_serves_one_request_after_the_other() -> None:
    first, second = served(twice)
    assert (first.outcome, first.is_reused) == (ClientOutcome.OK, False)
    assert (second.outcome, second.is_reused) == (ClientOutcome.OK, True)


def test_a_name_with_an_address_where_nobody_listens_is_tried_at_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    async def use(sender: Sender) -> list[Sample]:
        loop = asyncio.get_running_loop()
        connect = loop.create_connection

        async def two_addresses(host: str, port: int, **_: object) -> list[object]:
            return [(0, 0, 0, "", (address, port)) for address in ("127.0.0.2", "127.0.0.1")]

        async def noted(make: Any, address: str, port: int, **options: Any) -> Any:
            asked.append(address)
            return await connect(make, address, port, **options)

        monkeypatch.setattr(loop, "getaddrinfo", two_addresses)
        monkeypatch.setattr(loop, "create_connection", noted)
        first = await sender.ask(ask(0, stream=False))
        both = await asyncio.gather(*(sender.ask(ask(index, stream=False)) for index in (1, 2)))
        return [first, *both]

    samples = served(use, "http://some.name:{port}/v1")
    assert {sample.outcome for sample in samples} == {ClientOutcome.OK}
    assert asked == ["127.0.0.2", "127.0.0.1", "127.0.0.1"]


def test_nobody_listens_leaves_nothing_to_collect() -> None:
    async def main() -> list[Sample]:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        server.close()
        await server.wait_closed()
        sender = Sender(Target(name="t", url=f"http://127.0.0.1:{port}/v1", model="m"), 0.0)
        await sender.ask(ask())
        gc.freeze()
        gc.disable()
        try:
            found = [await sender.ask(ask(index)) for index in range(20)]
            assert gc.collect() < 20
        finally:
            gc.enable()
            gc.unfreeze()
        await sender.close()
        return found

    samples = asyncio.run(main())
    assert {(sample.outcome, sample.code) for sample in samples} == {(ClientOutcome.REFUSED, "ConnectionRefusedError")}


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("tls")
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    made = ["-keyout", str(key), "-out", str(certificate), "-days", "2"]
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]
    command = ["openssl", "req", "-x509", *curve, "-nodes", *made, *subject]
    subprocess.run(command, check=True, capture_output=True)
    return key, certificate


def test_https_is_checked_against_the_target_s_authorities(certificate: tuple[Path, Path]) -> None:
    key, chain = certificate
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(chain, key)
    url = "https://localhost:{port}/v1"
    assert [sample.outcome for sample in served(twice, url, context, str(chain))] == [ClientOutcome.OK] * 2
    unknown = served(twice, url, context)
    assert {(sample.outcome, sample.code) for sample in unknown} == {
        (ClientOutcome.REFUSED, "SSLCertVerificationError")
    }
