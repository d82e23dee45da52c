from __future__ import annotations

import pytest

from tests.gateway.stand import WHOLE, Engine, chat, post, stand_for
from tidegate.gateway.pool import Pool
from tidegate.gateway.settings import Endpoint, Timers
from tidegate.testing.virtual_loop import VirtualLoop, run_virtually


async def no_dial(*_: object) -> object:
    raise AssertionError("nobody dials here")


@pytest.mark.parametrize(("pause_s", "connections"), [(0.5, 1), (3.5, 1), (4.5, 2)])
def test_a_connection_is_reused_only_while_the_engine_surely_keeps_it_open(pause_s: float, connections: int) -> None:
    async def main() -> None:
        engine = Engine([WHOLE])
        with stand_for(engine) as stand:
            await stand.ask(post(chat()))
            due_at = stand.loop.time() + pause_s
            await stand.until(lambda: stand.loop.time() >= due_at)
            await stand.ask(post(chat()))
            assert len(engine.connections) == connections

    run_virtually(main())


def test_idle_connections_are_closed_by_us_before_the_engine_does() -> None:
    async def main() -> None:
        engine = Engine([WHOLE])
        with stand_for(engine) as stand:
            await stand.ask(post(chat()))
            await stand.until(lambda: engine.connections[0].transport is None)
            assert stand.loop.time() < 1006

    run_virtually(main())


def test_an_answer_that_ends_its_connection_is_not_reused() -> None:
    async def main() -> None:
        engine = Engine([WHOLE.replace(b"\r\n", b"\r\nconnection: close\r\n", 1)])
        with stand_for(engine) as stand:
            for _ in range(2):
                assert (await stand.ask(post(chat()))).status == 200
            assert len(engine.connections) == 2

    run_virtually(main())


def test_bytes_that_nobody_asked_for_end_an_idle_connection() -> None:
    async def main() -> None:
        engine = Engine([WHOLE, 1.0, WHOLE])
        with stand_for(engine) as stand:
            await stand.ask(post(chat()))
            await stand.until(lambda: engine.connections[0].transport is None)
            assert stand.loop.time() < 1002

    run_virtually(main())


@pytest.mark.parametrize(
    ("endpoint", "prefix", "own_headers"),
    [
        (Endpoint(name="r", host="h", port=80), b"", b"host: h\r\n"),
        (Endpoint(name="r", host="h", port=8080, base_path="/b/"), b"/b", b"host: h:8080\r\n"),
        (Endpoint(name="r", host="h", port=443, is_tls=True), b"", b"host: h\r\n"),
        (Endpoint(name="r", host="::1", port=8000), b"", b"host: [::1]:8000\r\n"),
        (
            Endpoint(name="r", host="h", port=81, proxy="http://p:3128", api_key="k"),
            b"http://h:81",
            b"host: h:81\r\nauthorization: Bearer k\r\n",
        ),
        (
            Endpoint(
                name="r", host="h", port=443, is_tls=True, proxy="http://p:3128", api_key="k", is_passthrough=True
            ),
            b"",
            b"host: h\r\n",
        ),
    ],
)
def test_a_replica_is_addressed_as_its_endpoint_says(endpoint: Endpoint, prefix: bytes, own_headers: bytes) -> None:
    loop = VirtualLoop()
    pool = Pool(endpoint, Timers(), loop, no_dial)  # type: ignore[arg-type]  # never called
    loop.close()
    assert (pool.prefix, pool.own_headers) == (prefix, own_headers)
