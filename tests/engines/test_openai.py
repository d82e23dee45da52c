from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from tests.engines.pages import VLLM, Pages, serving
from tidegate.engines.address import Address
from tidegate.engines.openai import OpenaiServer
from tidegate.errors import EngineError
from tidegate.policy.reading import Capacity, Reading

MODELS = b'{"data":[{"id":"a"},{"id":"b","owned_by":"somebody"}]}'


def read(pages: Pages, now: float = 7.0) -> Reading:
    return asyncio.run(_read(pages, now))


async def _read(pages: Pages, now: float) -> Reading:
    async with serving(pages.answers) as served:
        return await OpenaiServer(served.address).read(now)


def test_a_healthy_server_is_ready_and_tells_no_figures() -> None:
    assert read(Pages({"/health": (200, b"")})) == Reading(at=7.0)


def test_a_server_without_health_is_asked_for_its_models_from_then_on() -> None:
    async def twice() -> Pages:
        async with serving({"/v1/models": (200, MODELS)}) as pages:
            server = OpenaiServer(pages.address)
            assert (await server.read(1.0)).ready
            assert (await server.read(2.0)).ready
            return pages

    assert asyncio.run(twice()).asked == ["/health", "/v1/models", "/v1/models"]


@pytest.mark.parametrize(
    ("status", "is_ready", "words"),
    [(429, True, ""), (503, False, "503 loading"), (500, False, "500 loading"), (302, False, "302")],
)
def test_pushback_is_a_sign_of_life_and_a_5xx_is_not(status: int, is_ready: bool, words: str) -> None:
    reading = read(Pages({"/health": (status, b"loading")}))
    assert reading.ready is is_ready
    assert words in reading.error


def test_a_refused_key_is_told_with_what_to_do() -> None:
    reading = read(Pages({"/health": (401, b"")}))
    assert not reading.ready
    assert "without an API key" in reading.error
    assert "api_key_env" in reading.error


def test_a_server_that_is_not_there_is_not_ready_and_named() -> None:
    reading = asyncio.run(OpenaiServer(Address(url="http://127.0.0.1:1")).read(3.0))
    assert (reading.at, reading.ready) == (3.0, False)
    assert "no connection to http://127.0.0.1:1" in reading.error


async def _against(
    serve: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]], timeout_s: float = 5.0
) -> Reading:
    """The reading of a server that serves one connection so."""
    served = asyncio.Event()

    async def once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await serve(reader, writer)
        writer.close()
        await writer.wait_closed()
        served.set()

    server = await asyncio.start_server(once, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        return await OpenaiServer(Address(url=f"http://127.0.0.1:{port}", timeout_s=timeout_s)).read(0.0)
    finally:
        await served.wait()
        server.close()


def test_a_peer_that_speaks_no_http_is_not_ready() -> None:
    async def garbage(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        writer.write(b"SSH-2.0-x\r\n\r\n")

    reading = asyncio.run(_against(garbage))
    assert not reading.ready
    assert "not HTTP/1.1" in reading.error


def test_a_silent_server_is_a_timeout_and_no_verdict() -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    with pytest.raises(TimeoutError):
        asyncio.run(_against(silent, timeout_s=0.01))


def test_it_lists_its_models_and_tells_nothing_else() -> None:
    async def ask() -> tuple[tuple[str, ...], Capacity, tuple[int, ...] | None]:
        async with serving({"/v1/models": (200, MODELS)}) as pages:
            server = OpenaiServer(pages.address)
            return await server.models(), await server.capacity(), await server.count_tokens("/v1/completions", b"{}")

    assert asyncio.run(ask()) == (("a", "b"), Capacity(), None)


def test_it_tells_no_token_ids() -> None:
    async def ask() -> list[int] | None:
        async with serving({}) as pages:
            return await OpenaiServer(pages.address).token_ids("x")

    assert asyncio.run(ask()) is None


@pytest.mark.parametrize("page", [(200, b"<html>"), (200, b'{"data":"x"}'), (404, b"gone")])
def test_a_list_of_models_that_is_none_is_an_error_with_words(page: tuple[int, bytes]) -> None:
    async def ask() -> None:
        async with serving({"/v1/models": page}) as pages:
            await OpenaiServer(pages.address).models()

    with pytest.raises(EngineError, match="/v1/models answered"):
        asyncio.run(ask())


def test_the_key_is_sent_and_the_base_path_kept() -> None:
    async def ask() -> Pages:
        async with serving({"/base/health": (200, b"")}) as pages:
            assert (await OpenaiServer(Address(url=f"{pages.url}/base", api_key="s3cret")).read(0.0)).ready
            return pages

    assert "\r\nauthorization: Bearer s3cret\r\n" in asyncio.run(ask()).heads[0]


def test_a_plain_request_goes_through_a_proxy_in_absolute_form() -> None:
    async def ask() -> Pages:
        async with serving({"http://engine.example:8000/health": (200, b"")}) as pages:
            proxy = pages.url.replace("http://", "http://user:p%40ss@")
            address = Address(url="http://engine.example:8000", proxy=proxy)
            assert (await OpenaiServer(address).read(0.0)).ready
            return pages

    head = asyncio.run(ask()).heads[0]
    assert "\r\nhost: engine.example:8000\r\n" in head
    assert "\r\nproxy-authorization: Basic dXNlcjpwQHNz\r\n" in head


def test_recorded_vllm_pages_also_fit_the_plain_adapter() -> None:
    assert read(Pages(dict(VLLM))).running is None
