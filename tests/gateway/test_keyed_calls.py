"""Calls under an Idempotency-Key: one request, however many ask. In memory and in virtual time."""

from __future__ import annotations

import asyncio
import json
from functools import partial
from hashlib import sha256
from typing import Any

import pytest

from tests.gateway.stand import (
    DONE,
    STREAM_END,
    STREAM_HEAD,
    WHOLE,
    ClientEnd,
    Engine,
    Got,
    Stand,
    Step,
    chat,
    chunk,
    event,
    get,
    json_answer,
    post,
    stand_for,
)
from tidegate.gateway.settings import ApiKey, Endpoint
from tidegate.policy.idempotency import IdempotencyConfig
from tidegate.policy.path_config import PathConfig
from tidegate.policy.quota import QuotaConfig
from tidegate.policy.reading import Capacity
from tidegate.testing.virtual_loop import run_virtually

WHOLE_BODY = WHOLE.partition(b"\r\n\r\n")[2]
KEY = "idempotency-key: k1\r\n"
ORIGINAL, REPLAYED = b"x-tidegate-original-request-id", b"idempotency-replayed"


def keyed(key: str = "k1", headers: str = "", **fields: Any) -> bytes:
    return post(chat(**fields), headers=f"idempotency-key: {key}\r\n{headers}")


def http10(request: bytes) -> bytes:
    return request.replace(b"HTTP/1.1", b"HTTP/1.0", 1)


def slow_stream(*words: str, every_s: float = 1.0) -> list[Step]:
    steps: list[Step] = [STREAM_HEAD]
    for word in words:
        steps += [every_s, chunk(event(word))]
    return [*steps, chunk(DONE) + STREAM_END]


def events(*words: str) -> bytes:
    return b"".join(event(word) for word in words) + DONE


async def asks(stand: Stand, request: bytes, after_s: float = 0.0) -> ClientEnd:
    """A client that has sent ``request``; its answer may come later."""
    began = stand.loop.time()
    await stand.until(lambda: stand.loop.time() >= began + after_s)
    client = stand.client()
    client.send(request)
    await asyncio.sleep(0.01)
    return client


async def answer(stand: Stand, client: ClientEnd) -> Got:
    await stand.until(lambda: bool(client.answers))
    return client.answers[0]


def test_a_repeat_while_the_first_runs_joins_it_and_nothing_is_computed_or_charged_twice() -> None:
    async def main() -> None:
        engine = Engine([2.0, WHOLE])
        path = PathConfig(quota=QuotaConfig(requests_per_minute=6))
        with stand_for(engine, path=path) as stand:
            first = await asks(stand, keyed(headers="x-request-id: one\r\n"))
            second = await asks(stand, keyed(headers="x-request-id: two\r\n"), 1.0)
            of_first, of_second = await answer(stand, first), await answer(stand, second)
            assert (of_first.status, of_first.body) == (of_second.status, of_second.body) == (200, WHOLE_BODY)
            assert of_first.headers[b"x-request-id"] == b"one"
            assert ORIGINAL not in of_first.headers
            assert of_second.headers[b"x-request-id"] == b"two"
            assert of_second.headers[ORIGINAL] == b"one"
            assert REPLAYED not in of_second.headers
            assert of_first.headers[b"x-ratelimit-remaining-requests"] == b"5"
            assert b"x-ratelimit-remaining-requests" not in of_second.headers
            assert len(engine.requests) == len(stand.noted.offered) == 1
            rows = {row.request_id: row for row in stand.rows}
            assert (rows["one"].reuse, rows["one"].output_tokens, rows["one"].status) == ("", 3, 200)
            joined = rows["two"]
            assert (joined.reuse, joined.original_id, joined.output_tokens) == ("joined", "one", 0)
            assert (joined.status, joined.outcome, joined.attempts) == (200, None, 0)
            assert joined.closed_at - joined.arrived_at == pytest.approx(1.0, abs=0.2)

    run_virtually(main())


def test_a_repeat_after_the_end_gets_the_answer_again_until_it_is_too_old() -> None:
    async def main() -> None:
        engine = Engine([WHOLE])
        with stand_for(engine, idempotency=IdempotencyConfig(max_age_s=10.0)) as stand:
            first = await stand.ask(keyed(headers="x-request-id: one\r\n"))
            again = await stand.ask(keyed())
            assert (again.status, again.body) == (first.status, first.body)
            assert again.headers[REPLAYED] == b"true"
            assert again.headers[ORIGINAL] == b"one"
            assert again.headers[b"x-request-id"] != b"one"
            assert [row.reuse for row in stand.rows] == ["", "replayed"]
            series = {tuple(each[:2]): each[2] for each in stand.metrics.snapshot({}, 0).series[0].requests}
            assert series == {("ok", ""): 1, ("replayed", ""): 1}
            await asks(stand, keyed("other"), 11.0)
            third = await stand.ask(keyed())
            assert REPLAYED not in third.headers
            assert len(engine.requests) == 3

    run_virtually(main())


def test_whoever_joins_a_stream_in_its_middle_gets_its_beginning_and_the_rest() -> None:
    async def main() -> None:
        engine = Engine(slow_stream("a", "b", "c", "d"))
        with stand_for(engine) as stand:
            first = await asks(stand, keyed(stream=True))
            await stand.until(lambda: b'"b"' in first.raw)
            second = await asks(stand, keyed(stream=True))
            await stand.until(lambda: b'"b"' in second.raw, 0.5)
            assert b'"c"' not in second.raw
            for client in (first, second):
                got = await answer(stand, client)
                assert (got.status, got.body) == (200, events("a", "b", "c", "d"))
                assert got.headers[b"transfer-encoding"] == b"chunked"
            replayed = await stand.ask(keyed(stream=True))
            assert replayed.body == events("a", "b", "c", "d")
            assert replayed.headers[REPLAYED] == b"true"
            assert len(engine.requests) == 1

    run_virtually(main())


def test_heartbeats_go_to_those_who_wait_and_are_not_replayed() -> None:
    async def main() -> None:
        engine = Engine([20.0, *slow_stream("a", every_s=0.1)])
        with stand_for(engine) as stand:
            first = await asks(stand, keyed(stream=True))
            second = await asks(stand, keyed(stream=True), 1.0)
            assert b": waiting" in (await answer(stand, first)).body
            assert b": waiting" in (await answer(stand, second)).body
            assert (await stand.ask(keyed(stream=True))).body == events("a")

    run_virtually(main())


def test_a_client_of_http_1_0_joins_in_its_own_framing() -> None:
    async def main() -> None:
        engine = Engine(slow_stream("a", "b", "c"))
        with stand_for(engine) as stand:
            first = await asks(stand, keyed(stream=True))
            await stand.until(lambda: b'"a"' in first.raw)
            old = await asks(stand, http10(keyed(stream=True)))
            await stand.until(lambda: old.is_closed)
            assert old.answers[0].body == events("a", "b", "c")
            assert b"transfer-encoding" not in old.answers[0].headers
            assert (await answer(stand, first)).body == events("a", "b", "c")
            late = await asks(stand, http10(keyed(stream=True)))
            await stand.until(lambda: late.is_closed)
            assert late.answers[0].body == events("a", "b", "c")

    run_virtually(main())


def test_one_leaves_and_the_request_goes_on_whichever_it_was() -> None:
    async def main() -> None:
        for leaver in (0, 1):
            engine = Engine(slow_stream("a", "b", "c"))
            with stand_for(engine) as stand:
                clients = [await asks(stand, keyed(stream=True)), await asks(stand, keyed(stream=True), 0.5)]
                await stand.until(partial(has_seen, clients[1], b'"a"'))
                transport = clients[leaver].transport
                assert transport is not None
                transport.abort()
                assert (await answer(stand, clients[1 - leaver])).body == events("a", "b", "c")
                assert engine.left == 0
                assert sorted(row.reuse for row in stand.rows) == ["", "joined"]

    run_virtually(main())


def has_seen(client: ClientEnd, text: bytes) -> bool:
    return text in client.raw


def has_lost(engine: Engine) -> bool:
    return engine.left == 1


def leave(client: ClientEnd) -> None:
    assert client.transport is not None
    client.transport.abort()


def test_all_leave_and_the_engine_is_told_when_nobody_comes_back_in_time() -> None:
    async def main() -> None:
        for orphan_s, told_within_s in ((0.0, 0.05), (2.0, 2.3)):
            engine = Engine([STREAM_HEAD, chunk(event("a")), 60.0])
            with stand_for(engine, idempotency=IdempotencyConfig(orphan_s=orphan_s)) as stand:
                clients = [await asks(stand, keyed(stream=True)), await asks(stand, keyed(stream=True))]
                await stand.until(partial(has_seen, clients[1], b'"a"'))
                leave(clients[0])
                await asks(stand, get("/health"), 5.0)
                assert engine.left == 0
                left_at = stand.loop.time()
                leave(clients[1])
                await stand.until(partial(has_lost, engine))
                assert orphan_s <= stand.loop.time() - left_at <= told_within_s
                # The key is free again, also for another body.
                engine.script = lambda _: [WHOLE]
                assert (await stand.ask(keyed(max_tokens=3))).status == 200

    run_virtually(main())


def test_a_client_that_lost_its_connection_finds_its_request_running() -> None:
    async def main() -> None:
        engine = Engine(slow_stream("a", "b", "c", "d"))
        with stand_for(engine) as stand:
            first = await asks(stand, keyed(stream=True))
            await stand.until(lambda: b'"a"' in first.raw)
            leave(first)
            again = await asks(stand, keyed(stream=True), 1.5)
            assert (await answer(stand, again)).body == events("a", "b", "c", "d")
            assert (len(engine.requests), engine.left) == (1, 0)

    run_virtually(main())


def test_an_orphan_that_ends_in_time_is_kept_for_its_client() -> None:
    async def main() -> None:
        engine = Engine([1.0, WHOLE])
        with stand_for(engine) as stand:
            leave(await asks(stand, keyed()))
            await stand.until(lambda: len(stand.rows) == 1)
            assert (await stand.ask(keyed())).headers[REPLAYED] == b"true"
            assert len(engine.requests) == 1

    run_virtually(main())


@pytest.mark.parametrize("is_running", [True, False])
def test_another_body_under_the_same_key_is_refused(is_running: bool) -> None:
    async def main() -> None:
        with stand_for(Engine([1.0, WHOLE])) as stand:
            first = await asks(stand, keyed())
            if not is_running:
                await answer(stand, first)
            got = await stand.ask(keyed(max_tokens=17))
            assert (got.status, got.error["code"], got.error["param"]) == (
                422,
                "idempotency_key_reused",
                "idempotency-key",
            )
            assert got.headers[b"x-should-retry"] == b"false"
            assert (await answer(stand, first)).status == 200

    run_virtually(main())


def test_tenants_do_not_meet_under_one_key() -> None:
    async def main() -> None:
        engine = Engine([WHOLE])
        keys = tuple(ApiKey(sha256=sha256(name.encode()).hexdigest(), tenant=name) for name in ("a", "b"))
        with stand_for(engine, api_keys=keys) as stand:
            of_a = await stand.ask(keyed(headers="authorization: Bearer a\r\n"))
            of_b = await stand.ask(keyed(headers="authorization: Bearer b\r\n", max_tokens=17))
            assert (of_a.status, of_b.status) == (200, 200)
            assert REPLAYED not in of_b.headers
            assert len(engine.requests) == 2
            assert all(b"idempotency-key" not in request.fields for request in engine.requests)

    run_virtually(main())


@pytest.mark.parametrize(
    "script",
    [
        [json_answer({"error": {"message": "busy"}}, "503 Service Unavailable", "retry-after: 1\r\n")],
        [json_answer({"error": {"message": "broken"}}, "500 Internal Server Error")],
        [STREAM_HEAD, chunk(event("a")), "abort"],
        [STREAM_HEAD, chunk(event("a")), chunk(b'data: {"error": {"message": "x"}}\n\n') + STREAM_END],
        [STREAM_HEAD, chunk(event("a")) + STREAM_END],
    ],
)
def test_a_failure_is_not_kept_so_that_a_retry_can_succeed(script: list[Step]) -> None:
    async def main() -> None:
        engine = Engine(script)
        with stand_for(engine) as stand:
            await stand.ask(keyed(stream=True))
            engine.script = lambda _: slow_stream("b")
            got = await stand.ask(keyed(stream=True))
            assert (got.status, got.body) == (200, events("b"))
            assert REPLAYED not in got.headers

    run_virtually(main())


def test_the_engines_word_that_the_request_is_wrong_is_kept() -> None:
    async def main() -> None:
        engine = Engine([json_answer({"error": {"message": "no", "type": "invalid_request_error"}}, "400 Bad Request")])
        with stand_for(engine) as stand:
            first, again = await stand.ask(keyed()), await stand.ask(keyed())
            assert (first.status, first.body) == (again.status, again.body)
            assert again.headers[REPLAYED] == b"true"
            assert len(engine.requests) == 1

    run_virtually(main())


def test_those_who_joined_a_request_that_is_refused_are_refused_with_it() -> None:
    async def main() -> None:
        engine = Engine([30.0, WHOLE])
        with stand_for(engine, capacity=Capacity(sequences=1)) as stand:
            await asks(stand, post(chat()))
            first, second = await asks(stand, keyed(), 0.1), await asks(stand, keyed(), 0.1)
            for client in (first, second):
                got = await answer(stand, client)
                assert (got.status, got.error["code"]) == (429, "queue_timeout")
                assert b"retry-after" in got.headers

    run_virtually(main())


def test_what_drains_refuses_all_who_wait_for_one_answer() -> None:
    async def main() -> None:
        engine = Engine([30.0, WHOLE])
        with stand_for(engine, capacity=Capacity(sequences=1)) as stand:
            await asks(stand, post(chat()))
            clients = [await asks(stand, keyed(), 0.1), await asks(stand, keyed(), 0.1)]
            running = await asks(stand, keyed("k2"), 0.1)
            leave(running)
            stand.gateway.drain()
            for client in clients:
                assert (await answer(stand, client)).error["code"] == "shutting_down"

    run_virtually(main())


def test_an_orphan_does_not_hold_up_a_drain() -> None:
    async def main() -> None:
        engine = Engine([STREAM_HEAD, 60.0])
        with stand_for(engine, idempotency=IdempotencyConfig(orphan_s=50.0)) as stand:
            leave(await asks(stand, keyed(stream=True)))
            await asks(stand, get("/health"), 0.5)
            assert engine.left == 0
            stand.gateway.drain()
            await stand.until(lambda: engine.left == 1, 0.5)
            await stand.gateway.emptied()

    run_virtually(main())


def test_an_answer_that_is_too_long_is_not_kept() -> None:
    async def main() -> None:
        engine = Engine(slow_stream("a" * 400, "b" * 400, "c" * 400))
        config = IdempotencyConfig(max_answer_bytes=1000, max_bytes=1000)
        with stand_for(engine, idempotency=config) as stand:
            first = await asks(stand, keyed(stream=True))
            assert len((await answer(stand, first)).body) > 1000
            got = await stand.ask(keyed(stream=True))
            assert got.status == 200
            assert REPLAYED not in got.headers
            assert len(engine.requests) == 2

    run_virtually(main())


def test_a_repeat_in_the_middle_of_an_answer_that_is_too_long_may_come_back() -> None:
    async def main() -> None:
        engine = Engine([STREAM_HEAD, chunk(event("a" * 2000)), 30.0, chunk(DONE) + STREAM_END])
        config = IdempotencyConfig(max_answer_bytes=1000, max_bytes=1000)
        with stand_for(engine, idempotency=config) as stand:
            first = await asks(stand, keyed(stream=True))
            await stand.until(lambda: b"aaa" in first.raw)
            got = await stand.ask(keyed(stream=True))
            assert (got.status, got.error["code"]) == (409, "idempotency_key_in_use")
            assert (got.headers[b"retry-after"], got.headers[b"x-should-retry"]) == (b"1", b"true")
            # And when its client leaves, nobody can join it: it ends at once.
            leave(first)
            await stand.until(lambda: engine.left == 1, 0.1)

    run_virtually(main())


def test_an_orphan_that_outgrows_what_is_kept_ends() -> None:
    async def main() -> None:
        engine = Engine([STREAM_HEAD, 1.0, chunk(event("a" * 2000)), 30.0, chunk(DONE) + STREAM_END])
        config = IdempotencyConfig(max_answer_bytes=1000, max_bytes=1000, orphan_s=20.0)
        with stand_for(engine, idempotency=config) as stand:
            leave(await asks(stand, keyed(stream=True)))
            await stand.until(lambda: engine.left == 1, 1.5)

    run_virtually(main())


def test_a_slow_client_does_not_hold_up_the_others_and_is_cut_off_at_the_bound() -> None:
    async def main() -> None:
        block = "x" * 50_000
        engine = Engine(slow_stream(*[block] * 30, every_s=0.1))
        config = IdempotencyConfig(max_answer_bytes=200_000)
        with stand_for(engine, idempotency=config) as stand:
            first, slow = await asks(stand, keyed(stream=True)), await asks(stand, keyed(stream=True))
            assert slow.transport is not None
            slow.transport.pause_reading()
            got = await answer(stand, first)
            assert got.body == events(*[block] * 30)
            assert slow.is_closed
            assert not slow.answers

    run_virtually(main())


def test_the_engine_is_paused_only_while_all_clients_are_slow() -> None:
    async def main() -> None:
        block = "x" * 50_000
        engine = Engine(slow_stream(*[block] * 60, every_s=0.01))
        with stand_for(engine) as stand:
            clients = [await asks(stand, keyed(stream=True)), await asks(stand, keyed(stream=True))]
            for client in clients:
                assert client.transport is not None
                client.transport.pause_reading()
            await asks(stand, get("/health"), 5.0)
            assert not stand.rows
            assert clients[0].transport is not None
            clients[0].transport.resume_reading()
            assert (await answer(stand, clients[0])).body == events(*[block] * 60)

    run_virtually(main())


@pytest.mark.parametrize("key", ["", "   ", "k" * 256, "k\x7fk", "kä"])
def test_what_cannot_be_a_key_is_refused(key: str) -> None:
    async def main() -> None:
        engine = Engine([WHOLE])
        with stand_for(engine) as stand:
            text = json.dumps(chat()).encode()
            head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: gate\r\nidempotency-key: {key}\r\n"
            got = await stand.ask(f"{head}content-length: {len(text)}\r\n\r\n".encode("latin-1") + text)
            assert got.status == 400
            if b"invalid_header" in got.body:
                assert "Idempotency-Key must be" in got.error["message"]
            assert not engine.requests

    run_virtually(main())


def test_switched_off_or_without_a_body_to_repeat_the_key_says_nothing() -> None:
    async def main() -> None:
        engine = Engine([WHOLE])
        with stand_for(engine, idempotency=IdempotencyConfig(enabled=False)) as stand:
            await stand.ask(keyed())
            await stand.ask(keyed(max_tokens=17))
        with stand_for(engine) as stand:
            for _ in range(2):
                assert (await stand.ask(get("/v1/other", KEY))).status == 200
        assert len(engine.requests) == 4

    run_virtually(main())


def test_a_connection_goes_on_with_its_next_request_after_a_join_and_after_a_replay() -> None:
    async def main() -> None:
        engine = Engine([1.0, WHOLE])
        with stand_for(engine) as stand:
            first = await asks(stand, keyed())
            second = await asks(stand, keyed() + keyed() + get("/v1/models"), 0.1)
            await stand.until(lambda: len(second.answers) == 3)
            assert [got.status for got in second.answers] == [200, 200, 200]
            assert REPLAYED in second.answers[1].headers
            assert (await answer(stand, first)).status == 200
            assert len(engine.requests) == 1

    run_virtually(main())


def test_a_reload_changes_the_bounds() -> None:
    async def main() -> None:
        engine = Engine([WHOLE])
        with stand_for(engine) as stand:
            await stand.ask(keyed())
            stand.reload(
                ["r1"],
                Endpoint(name="r1", host="127.0.0.1", port=9000),
                idempotency=IdempotencyConfig(max_bytes=10, max_answer_bytes=10),
            )
            await stand.ask(keyed())
            assert len(engine.requests) == 2

    run_virtually(main())
