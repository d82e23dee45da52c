"""One client's connection: pipelining, limits, times, proxies. In memory and in virtual time."""

from __future__ import annotations

import json

import pytest

from tests.gateway.stand import WHOLE, Engine, Step, chat, event, get, post, stand_for, stream_of
from tidegate.gateway.settings import Limits, Timers
from tidegate.policy.outcomes import Outcome
from tidegate.testing.memory_transport import every, whole
from tidegate.testing.virtual_loop import run_virtually
from tidegate.wire.requests import Incoming


def numbered(request: Incoming) -> list[Step]:
    seed = json.loads(request.body)["seed"]
    return [0.1, WHOLE.replace(b'"hi"', b'"%02d"' % seed)]


@pytest.mark.parametrize("size", [1, 7, 100_000])
def test_pipelined_requests_are_answered_in_order_one_at_a_time(size: int) -> None:
    async def main() -> None:
        engine = Engine(numbered)
        with stand_for(engine) as stand:
            client = stand.client(split=every(size))
            client.send(b"".join(post(chat(seed=seed)) for seed in range(5)) + get("/health") + post(b"bad"))
            await stand.until(lambda: len(client.answers) == 7)
            assert [got.status for got in client.answers] == [200] * 6 + [400]
            texts = [json.loads(got.body)["choices"][0]["text"] for got in client.answers[:5]]
            assert texts == ["00", "01", "02", "03", "04"]
            assert len(engine.connections) == 1
            assert not client.is_closed

    run_virtually(main())


def test_a_client_that_pipelines_without_end_is_read_no_further() -> None:
    async def main() -> None:
        engine = Engine(numbered)
        with stand_for(engine, limits=Limits(pipelined_requests=3)) as stand:
            client = stand.client(split=lambda data: [data])
            for seed in range(12):
                client.send(post(chat(seed=seed)))
            await stand.until(lambda: len(engine.requests) == 1)
            assert client.transport is not None
            assert client.transport.get_write_buffer_size() > 0
            await stand.until(lambda: len(client.answers) == 12)
            assert {got.status for got in client.answers} == {200}

    run_virtually(main())


def test_a_client_that_leaves_behind_pipelined_requests_leaves_nothing_open() -> None:
    async def main() -> None:
        with stand_for(Engine(numbered)) as stand:
            client = stand.client()
            client.send(b"".join(post(chat(seed=seed)) for seed in range(5)))
            await stand.until(lambda: stand.permits == 1)
            assert client.transport is not None
            client.transport.close()
            await stand.until(lambda: stand.permits == 0)
            assert [row.outcome for row in stand.rows] == [Outcome.CLIENT_LEFT]

    run_virtually(main())


def test_leave_to_send_a_body_is_given_once() -> None:
    async def main() -> None:
        with stand_for(Engine([WHOLE])) as stand:
            client = stand.client()
            head, _, body = post(chat(), headers="expect: 100-continue\r\n").partition(b"\r\n\r\n")
            client.send(head + b"\r\n\r\n")
            await stand.until(lambda: client.raw == b"HTTP/1.1 100 Continue\r\n\r\n")
            client.send(body)
            await stand.until(lambda: bool(client.answers))
            assert client.raw.count(b"100 Continue") == 1

    run_virtually(main())


def test_bytes_that_are_no_request_get_an_answer_and_the_end_of_the_connection() -> None:
    async def main() -> None:
        with stand_for(Engine([WHOLE])) as stand:
            client = stand.client()
            client.send(b"\x16\x03\x01 hello")
            await stand.until(lambda: client.is_closed)
            assert (client.answers[0].status, client.answers[0].headers[b"connection"]) == (400, b"close")
            assert stand.rows[0].code == "bad_http"
            assert not stand.gateway.connections

    run_virtually(main())


def test_garbage_behind_a_running_request_ends_both() -> None:
    async def main() -> None:
        with stand_for(Engine([50.0, WHOLE])) as stand:
            client = stand.client()
            client.send(post(chat()) + b"\x00garbage")
            await stand.until(lambda: client.is_closed)
            await stand.until(lambda: stand.permits == 0)
            assert not client.answers
            assert [row.outcome for row in stand.rows] == [Outcome.CLIENT_LEFT]

    run_virtually(main())


def test_an_upload_that_is_too_large_is_read_on_a_while_so_that_its_answer_arrives() -> None:
    async def main() -> None:
        with stand_for(Engine([WHOLE]), limits=Limits(body_bytes=1000)) as stand:
            client = stand.client()
            client.send(post(b"x" * 5000)[:2000])
            await stand.until(lambda: bool(client.answers))
            assert client.answers[0].error["code"] == "request_too_large"
            client.send(b"x" * 3000)
            begun_at = stand.loop.time()
            await stand.until(lambda: client.is_closed)
            assert stand.loop.time() - begun_at <= 2.0 + 1.1

    run_virtually(main())


@pytest.mark.parametrize(
    ("sent", "closes_after_s", "status"),
    [
        (b"", 75.0, None),
        (get("/health"), 75.0, 200),
        (b"POST /v1/chat/completions HTTP/1.1\r\nhost: g\r\n", 30.0, 408),
        (post(chat())[:-5], 30.0, 408),
    ],
)
def test_an_idle_or_stuck_client_is_sent_away(sent: bytes, closes_after_s: float, status: int | None) -> None:
    async def main() -> None:
        with stand_for(Engine([WHOLE])) as stand:
            client = stand.client()
            client.send(sent)
            await stand.until(lambda: client.is_closed, within_s=100)
            # A refused client is listened to for two seconds more.
            assert closes_after_s <= stand.loop.time() - 1000 <= closes_after_s + 4.5
            assert [got.status for got in client.answers] == ([] if status is None else [status])

    run_virtually(main())


def test_a_slow_head_has_no_more_time_for_coming_bit_by_bit_but_a_slow_body_has() -> None:
    async def main() -> None:
        request = post(chat(), headers="x-pad: " + "x" * 60 + "\r\n")
        head_bytes = request.index(b"\r\n\r\n") + 4
        with stand_for(Engine([WHOLE])) as stand:
            slow_head, slow_body = stand.client(), stand.client()
            slow_body.send(request[:head_bytes])
            for at in range(60):
                slow_head.send(request[at : at + 1])
                slow_body.send(request[head_bytes + at : head_bytes + at + 1])
                due_at = stand.loop.time() + 1.0
                await stand.until(lambda due_at=due_at: stand.loop.time() >= due_at)  # type: ignore[misc]  # bound at once
            slow_body.send(request[head_bytes + 60 :])
            await stand.until(lambda: bool(slow_body.answers))
            assert [got.status for got in slow_head.answers] == [408]
            assert [got.status for got in slow_body.answers] == [200]

    run_virtually(main())


def test_a_running_request_is_never_idle() -> None:
    async def main() -> None:
        with stand_for(Engine([200.0, WHOLE]), timers=Timers(idle_s=10.0)) as stand:
            assert (await stand.ask(post(chat()), within_s=300)).status == 200

    run_virtually(main())


PREAMBLE = b"\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c\xcb\x00\x71\x07\x0a\x00\x00\x01\x1f\x90\x00\x50"


@pytest.mark.parametrize("size", [1, 100_000])
def test_a_trusted_proxy_says_whose_connection_it_is(size: int) -> None:
    async def main() -> None:
        with stand_for(Engine([WHOLE]), trusted_proxies=("10.0.0.0/8",)) as stand:
            client = stand.client(peername="10.1.2.3", split=every(size))
            client.send(PREAMBLE + post(chat()))
            await stand.until(lambda: bool(client.answers))
            assert stand.source_of_last_request == "203.0.113.7"

    run_virtually(main())


def test_from_anybody_else_a_preamble_is_no_http() -> None:
    async def main() -> None:
        with stand_for(Engine([WHOLE]), trusted_proxies=("10.0.0.0/8",)) as stand:
            client = stand.client(peername="192.0.2.1")
            client.send(PREAMBLE + post(chat()))
            await stand.until(lambda: client.is_closed)
            assert client.answers[0].status == 400

    run_virtually(main())


@pytest.mark.parametrize(("peer", "source"), [("10.1.2.3", "198.51.100.9"), ("192.0.2.1", "192.0.2.1")])
def test_a_forwarded_address_counts_only_from_a_trusted_proxy(peer: str, source: str) -> None:
    async def main() -> None:
        with stand_for(Engine([WHOLE]), trusted_proxies=("10.0.0.0/8",)) as stand:
            client = stand.client(peername=peer, split=whole)
            client.send(post(chat(), headers="x-forwarded-for: 1.1.1.1, 198.51.100.9, 10.0.0.2\r\n"))
            await stand.until(lambda: bool(client.answers))
            assert stand.source_of_last_request == source

    run_virtually(main())


def test_a_slow_reader_of_the_last_answer_slows_the_next_engine_too() -> None:
    async def main() -> None:
        large = event("x" * 400_000)
        in_one_read = b"".join(part for part in stream_of("x" * 400_000) if isinstance(part, bytes))
        engine = Engine([in_one_read])
        with stand_for(engine) as stand:
            client = stand.client()
            assert client.transport is not None
            client.transport.pause_reading()
            client.send(post(chat(stream=True)) * 2)
            await stand.until(lambda: len(engine.requests) == 2)
            assert len(stand.rows) == 1
            client.transport.resume_reading()
            await stand.until(lambda: len(client.answers) == 2)
            assert client.answers[0].body.startswith(large)

    run_virtually(main())
