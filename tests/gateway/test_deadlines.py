"""The client's deadline at the engine: it is told what is left, and it never works past it."""

from __future__ import annotations

import pytest

from tests.gateway.stand import STREAM_HEAD, WHOLE, Engine, Stand, Step, chat, chunk, event, post, stand_for
from tidegate.gateway.settings import Timers
from tidegate.policy.reading import Capacity
from tidegate.testing.virtual_loop import run_virtually

TICK_S = Timers().tick_s
DEADLINE = b"x-tidegate-deadline-ms"
WORD: list[Step] = [chunk(event("word")), 0.05]
ON_AND_ON: list[Step] = [STREAM_HEAD, *(WORD * 400)]


@pytest.mark.parametrize(
    ("headers", "told"),
    [
        ("", None),
        ("x-tidegate-deadline-ms: 5000\r\n", b"5000"),
        ("grpc-timeout: 2S\r\nx-tidegate-deadline-ms: 5000\r\n", b"2000"),
        # Of a whole answer the first byte comes with the last, so this bounds all of it.
        ("x-stainless-read-timeout: 60\r\n", b"60000"),
    ],
)
def test_the_engine_is_told_what_is_left_only_where_the_client_named_an_end(headers: str, told: bytes | None) -> None:
    async def main() -> None:
        engine = Engine([WHOLE])
        with stand_for(engine) as stand:
            assert (await stand.ask(post(chat(), headers=headers))).status == 200
            assert engine.requests[0].fields.get(DEADLINE) == told
            assert (b"grpc-timeout" in engine.requests[0].fields) is ("grpc" in headers)

    run_virtually(main())


def test_the_read_timeout_of_a_stream_bounds_no_total() -> None:
    async def main() -> None:
        engine = Engine([WHOLE])
        with stand_for(engine) as stand:
            await stand.ask(post(chat(stream=True), headers="x-stainless-read-timeout: 60\r\n"))
            assert DEADLINE not in engine.requests[0].fields

    run_virtually(main())


def test_time_in_the_queue_is_taken_off() -> None:
    async def main() -> None:
        engine = Engine(lambda request: [1.0, WHOLE])
        with stand_for(engine, capacity=Capacity(sequences=1)) as stand:
            first, second = stand.client(), stand.client()
            first.send(post(chat()))
            second.send(post(chat(), headers="x-tidegate-deadline-ms: 9000\r\n"))
            await stand.until(lambda: len(second.answers) == 1)
            assert second.answers[0].status == 200
            assert int(engine.requests[1].fields[DEADLINE]) == pytest.approx(8000, abs=20)

    run_virtually(main())


@pytest.mark.parametrize(
    "script",
    [
        pytest.param([60.0, WHOLE], id="silent"),
        pytest.param([STREAM_HEAD, chunk(event("one")), 60.0], id="stalled"),
        pytest.param(ON_AND_ON, id="writing"),
    ],
)
@pytest.mark.parametrize("stream", [True, False])
def test_the_engine_learns_within_a_tick_of_the_deadline_that_nobody_waits(script: list[Step], stream: bool) -> None:
    async def main() -> None:
        engine = Engine(script)
        with stand_for(engine) as stand:
            client = stand.client()
            asked_at = stand.loop.time()
            client.send(post(chat(stream=stream), headers="x-tidegate-deadline-ms: 1500\r\n"))
            left_at = await when_left(stand, engine)
            assert 1.5 - 1e-6 <= left_at - asked_at <= 1.5 + TICK_S + 0.02
            await stand.until(lambda: bool(client.answers))
            assert b"total_timeout" in client.raw or b"first_byte_timeout" in client.raw

    run_virtually(main())


async def when_left(stand: Stand, engine: Engine) -> float:
    await stand.until(lambda: engine.left == 1)
    return stand.loop.time()


def test_a_deadline_that_ends_in_the_queue_never_reaches_the_engine() -> None:
    async def main() -> None:
        engine = Engine(lambda request: [4.0, WHOLE])
        with stand_for(engine, capacity=Capacity(sequences=1)) as stand:
            first, second = stand.client(), stand.client()
            first.send(post(chat()))
            second.send(post(chat(), headers="x-tidegate-deadline-ms: 1000\r\n"))
            await stand.until(lambda: len(second.answers) == 1 and len(first.answers) == 1)
            assert second.answers[0].status in (408, 429)
            assert len(engine.requests) == 1

    run_virtually(main())
