"""Streams of events: bytes unchanged, every end told apart. In memory and in virtual time."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from functools import partial
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.gateway.stand import (
    DONE,
    STREAM_END,
    STREAM_HEAD,
    WHOLE,
    ClientEnd,
    Engine,
    Step,
    chat,
    chunk,
    event,
    json_answer,
    post,
    stand_for,
    stream_of,
    usage_event,
)
from tidegate.gateway.settings import Timers
from tidegate.policy.outcomes import Outcome
from tidegate.policy.path_config import PathConfig
from tidegate.policy.reading import Capacity
from tidegate.policy.request import Request
from tidegate.policy.slots import SlotsConfig
from tidegate.testing.memory_transport import Split, every
from tidegate.testing.virtual_loop import run_virtually

STREAM = chat(stream=True)
BODY = b": ping\n\n" + event("a") + event("data: [DONE]\n\n") + usage_event(11, 2) + DONE


def cut_at(sizes: list[int]) -> Split:
    def split(data: bytes) -> Iterator[bytes]:
        at, turn = 0, 0
        while at < len(data):
            size = sizes[turn % len(sizes)] if sizes else len(data)
            yield data[at : at + size]
            at, turn = at + size, turn + 1

    return split


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(1, 400), max_size=6), st.lists(st.integers(0, len(BODY)), max_size=6))
def test_the_bytes_of_a_stream_arrive_unchanged_wherever_reads_and_chunks_split_them(
    reads: list[int], chunks: list[int]
) -> None:
    async def main() -> None:
        edges = [0, *sorted(chunks), len(BODY)]
        pieces = [BODY[start:end] for start, end in pairwise(edges) if end > start]
        engine = Engine([STREAM_HEAD + b"".join(map(chunk, pieces)) + STREAM_END])
        engine.split = cut_at(reads)
        with stand_for(engine) as stand:
            got = await stand.ask(post(STREAM))
            assert (got.status, got.body) == (200, BODY)
            row = stand.rows[0]
            assert (row.outcome, row.prompt_tokens, row.output_tokens) == (Outcome.OK, 11, 2)
            assert stand.permits == 0

    run_virtually(main())


def contains(client: ClientEnd, part: bytes) -> bool:
    return part in client.raw


def test_each_read_goes_out_at_once() -> None:
    async def main() -> None:
        first, second = event("first"), event("second")
        engine = Engine([STREAM_HEAD, 1.0, chunk(first), 1.0, chunk(second[:-9]), 1.0, chunk(second[-9:] + DONE)])
        with stand_for(engine) as stand:
            client = stand.client()
            client.send(post(STREAM))
            begun_at = stand.loop.time()
            seen = []
            for part in (first, second[:-9], DONE):
                await stand.until(partial(contains, client, part))
                seen.append(round(stand.loop.time() - begun_at))
            assert seen == [1, 2, 3]

    run_virtually(main())


@pytest.mark.parametrize("ending", ["close", "abort"])
@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        (event("a") + event("b"), event("a") + event("b")),
        (event("a") + event("b")[:20], event("a") + event("b")[:20] + b"\n\n"),
    ],
)
def test_a_cut_stream_ends_with_a_typed_error_and_no_done(ending: str, sent: bytes, kept: bytes) -> None:
    async def main() -> None:
        with stand_for(Engine([STREAM_HEAD + chunk(sent), 0.5, ending])) as stand:
            got = await stand.ask(post(STREAM))
            assert got.body.startswith(kept + b'data: {"error":')
            assert b"[DONE]" not in got.body
            last = json.loads(got.body[len(kept) + 6 :])
            assert last["error"]["code"] == "cut"
            row = stand.rows[0]
            assert (row.outcome, row.code, row.status, row.refused_in_stream) == (Outcome.CUT, "cut", 200, True)
            assert (row.output_tokens, stand.permits) == (sent.count(b"\n\n"), 0)

    run_virtually(main())


def test_a_stream_that_loses_its_connection_after_done_is_complete() -> None:
    async def main() -> None:
        with stand_for(Engine([STREAM_HEAD + chunk(event("a") + DONE), 0.1, "close"])) as stand:
            got = await stand.ask(post(STREAM))
            assert got.body == event("a") + DONE
            assert stand.rows[0].outcome is Outcome.OK

    run_virtually(main())


@pytest.mark.parametrize(("before", "outcome"), [(b"", Outcome.ENGINE_ERROR), (event("a"), Outcome.CUT)])
def test_an_engines_own_error_event_counts_and_its_done_is_not_passed_on(before: bytes, outcome: Outcome) -> None:
    async def main() -> None:
        error = b'data: {"error":{"message":"EngineCore encountered an issue","code":500}}\n\n'
        with stand_for(Engine([STREAM_HEAD + chunk(before + error + DONE) + STREAM_END])) as stand:
            got = await stand.ask(post(STREAM))
            assert got.body == before + error
            assert stand.rows[0].outcome is outcome
            assert stand.permits == 0

    run_virtually(main())


def test_heartbeats_show_a_waiting_client_that_its_stream_lives() -> None:
    async def main() -> None:
        with stand_for(Engine([40.0, *stream_of("a")]), timers=Timers(heartbeat_s=15.0)) as stand:
            got = await stand.ask(post(STREAM))
            assert got.body == b": waiting\n\n" * 2 + event("a") + DONE
            assert got.headers[b"content-type"].startswith(b"text/event-stream")
            assert (stand.rows[0].outcome, stand.rows[0].refused_in_stream) == (Outcome.OK, False)

    run_virtually(main())


@pytest.mark.parametrize(("heartbeat_s", "body"), [(0.0, STREAM), (15.0, chat())])
def test_heartbeats_can_be_off_and_only_streams_have_them(heartbeat_s: float, body: dict[str, object]) -> None:
    async def main() -> None:
        answer: list[Step] = stream_of("a") if body["model"] and "stream" in body else [WHOLE]
        with stand_for(Engine([40.0, *answer]), timers=Timers(heartbeat_s=heartbeat_s)) as stand:
            assert b"waiting" not in (await stand.ask(post(body))).body

    run_virtually(main())


def test_after_a_heartbeat_a_refusal_and_an_engines_error_become_events() -> None:
    async def main() -> None:
        answer = json_answer({"error": {"message": "boom", "type": "x", "code": 500}}, "500 Oops")
        with stand_for(Engine([20.0, answer]), timers=Timers(heartbeat_s=5.0)) as stand:
            got = await stand.ask(post(STREAM))
            assert got.status == 200
            assert json.loads(got.body.rpartition(b"data: ")[2])["error"]["message"] == "boom"
            assert (stand.rows[0].refused_in_stream, stand.rows[0].outcome) == (True, Outcome.ENGINE_ERROR)

    run_virtually(main())


def test_a_queued_stream_has_heartbeats_and_its_refusal_is_an_event() -> None:
    async def main() -> None:
        engine = Engine([WHOLE])
        engine.script = lambda request: [300.0, WHOLE]
        with stand_for(engine, capacity=Capacity(sequences=1), timers=Timers(heartbeat_s=2.0)) as stand:
            first = stand.client()
            first.send(post(chat()))
            await stand.until(lambda: len(engine.requests) == 1)
            got = await stand.ask(post(STREAM))
            assert got.body.startswith(b": waiting\n\n" * 4 + b'data: {"error":')
            assert json.loads(got.body.rpartition(b"data: ")[2])["error"]["code"] == "queue_timeout"
            assert (stand.rows[0].refused_in_stream, stand.rows[0].status) == (True, 200)

    run_virtually(main())


def test_a_waiting_request_says_how_long_it_waited() -> None:
    async def main() -> None:
        with stand_for(Engine([1.0, WHOLE]), capacity=Capacity(sequences=1)) as stand:
            first = stand.client()
            first.send(post(chat()))
            await stand.until(lambda: len(stand.engines["r1"].requests) == 1)
            got = await stand.ask(post(chat()))
            assert 900 <= int(got.headers[b"x-tidegate-queue-ms"]) <= 1000

    run_virtually(main())


def test_comments_of_the_engine_do_not_hide_a_stall() -> None:
    async def main() -> None:
        pings: list[Step] = [step for _ in range(100) for step in (5.0, chunk(b": ping\n\n"))]
        with stand_for(Engine([STREAM_HEAD + chunk(event("a")), *pings])) as stand:
            got = await stand.ask(post(STREAM), within_s=600)
            assert json.loads(got.body.rpartition(b"data: ")[2])["error"]["code"] == "gap_timeout"
            assert stand.engines["r1"].left == 1

    run_virtually(main())


def test_a_client_that_does_not_read_stops_the_engine_and_not_the_other_way_round() -> None:
    async def main() -> None:
        large = event("x" * 60_000)
        with stand_for(Engine([STREAM_HEAD, *[chunk(large)] * 40, chunk(DONE) + STREAM_END])) as stand:
            client = stand.client()
            assert client.transport is not None
            client.transport.pause_reading()
            client.send(post(STREAM))
            await stand.until(lambda: stand.loop.time() > 1030)
            end = stand.engines["r1"].connections[0]
            assert end.transport is not None
            assert end.transport.get_write_buffer_size() > len(large)
            assert not stand.rows
            client.transport.resume_reading()
            await stand.until(lambda: bool(client.answers))
            assert client.answers[0].body == large * 40 + DONE
            assert stand.rows[0].outcome is Outcome.OK

    run_virtually(main())


def test_a_stream_survives_reads_of_one_byte_on_both_sides() -> None:
    async def main() -> None:
        engine = Engine(stream_of("a", "b"), split=every(1))
        with stand_for(engine) as stand:
            client = stand.client(split=every(1))
            client.send(post(STREAM))
            await stand.until(lambda: bool(client.answers))
            assert client.answers[0].body == event("a") + event("b") + DONE

    run_virtually(main())


def test_a_stream_that_outgrows_what_was_reserved_gets_more_while_it_runs() -> None:
    async def main() -> None:
        path = PathConfig(slots=SlotsConfig(mode="learned"))
        words = [step for _ in range(90) for step in (chunk(event("a")), 0.1)]
        steps: list[Step] = [STREAM_HEAD, *words, chunk(DONE) + STREAM_END]
        capacity = Capacity(kv_tokens=8192, slot_tokens=16)
        with stand_for(Engine(steps), path=path, capacity=capacity) as stand:
            (upstream,) = stand.path.upstreams.values()
            for number in range(400):
                upstream.expectation.learn(Request(number, "m", 0.0, 0), 500, 1 + number % 100, 500)
            client = stand.client()
            client.send(post(chat(stream=True, max_tokens=500)))
            slots = upstream.replicas[0].slots
            await asyncio.sleep(0.5)
            first = slots.held
            await asyncio.sleep(8.0)
            assert 0 < first < slots.held < 500 // slots.slot_tokens
            await stand.until(lambda: not stand.permits)
            assert (slots.held, slots.overdrafts) == (0, 0)

    run_virtually(main())
