"""One request's life when something goes wrong. In memory and in virtual time."""

from __future__ import annotations

import json

import pytest

from tests.gateway.stand import (
    DONE,
    STREAM_HEAD,
    WHOLE,
    Engine,
    Step,
    chat,
    chunk,
    event,
    get,
    json_answer,
    post,
    stand_for,
    stream_of,
)
from tidegate.gateway.settings import Endpoint
from tidegate.policy.decisions import Reason
from tidegate.policy.ladder import LadderConfig
from tidegate.policy.outcomes import Outcome
from tidegate.policy.path_config import PathConfig
from tidegate.policy.queue import QueueConfig
from tidegate.policy.reading import Capacity, Reading
from tidegate.policy.timeouts import PhaseConfig, TimeoutsConfig
from tidegate.testing.virtual_loop import run_virtually

BUSY = json_answer({"error": {"message": "The engine is currently busy", "code": 503}}, "503 Busy")
BROKEN = json_answer({"error": {"message": "boom", "code": 500}}, "500 Broken")


def fixed(seconds: float) -> PhaseConfig:
    return PhaseConfig(floor_s=seconds, ceiling_s=seconds, default_s=seconds)


TIMEOUTS = PathConfig(timeouts=TimeoutsConfig(first_byte=fixed(5.0), gap=fixed(3.0), total=fixed(20.0)))
TOKENS: list[Step] = [step for _ in range(100) for step in (1.0, chunk(event("a")))]


# ---- what the engine does wrong -----------------------------------------------------------------


@pytest.mark.parametrize("ending", ["close", "abort"])
@pytest.mark.parametrize("partial", [b"", b"HTTP/1.1 200 OK\r\n", WHOLE[:-5], b"garbage\r\n\r\n"])
def test_an_answer_that_is_not_complete_becomes_a_json_502(ending: str, partial: bytes) -> None:
    async def main() -> None:
        steps: list[Step] = [partial, 0.1, ending] if partial else [ending]
        with stand_for(Engine(steps)) as stand:
            got = await stand.ask(post(chat()))
            assert (got.status, got.error["code"]) == (502, "engine_error")
            assert (stand.rows[0].outcome, stand.permits) == (Outcome.ENGINE_ERROR, 0)

    run_virtually(main())


def test_an_answer_of_unknown_kind_that_is_cut_breaks_the_clients_connection() -> None:
    async def main() -> None:
        audio = b"HTTP/1.1 200 OK\r\ncontent-type: audio/mpeg\r\ncontent-length: 100\r\n\r\nhalf of it"
        with stand_for(Engine([audio, 0.1, "close"])) as stand:
            client = stand.client()
            client.send(get("/v1/audio/x"))
            await stand.until(lambda: client.is_closed)
            assert client.raw.endswith(b"half of it")
            assert not client.answers
            assert stand.rows[0].outcome is Outcome.CUT

    run_virtually(main())


@pytest.mark.parametrize(
    ("answer", "status", "outcome", "message"),
    [
        (BROKEN, 500, Outcome.ENGINE_ERROR, "boom"),
        (BUSY, 503, Outcome.PUSHBACK, "The engine is currently busy"),
        (json_answer({"detail": "x"}, "429 Slow Down"), 429, Outcome.PUSHBACK, None),
        (
            json_answer({"error": {"message": "Loading model"}}, "503 Loading"),
            503,
            Outcome.ENGINE_ERROR,
            "Loading model",
        ),
        (json_answer({"error": {"message": "too long"}}, "400 Bad"), 400, Outcome.CLIENT_FAULT, "too long"),
        (json_answer({"message": "no such thing"}, "404 Nope"), 404, Outcome.CLIENT_FAULT, None),
        (json_answer({}, "401 Who"), 502, Outcome.ENGINE_ERROR, None),
        (b"HTTP/1.1 502 Bad\r\ncontent-length: 9\r\n\r\n<p>no</p>", 502, Outcome.ENGINE_ERROR, None),
    ],
)
def test_an_engines_error_keeps_its_meaning_and_gets_openais_shape(
    answer: bytes, status: int, outcome: Outcome, message: str | None
) -> None:
    async def main() -> None:
        with stand_for(Engine([answer])) as stand:
            got = await stand.ask(post(chat()))
            assert got.status == status
            assert message is None or got.error["message"] == message
            assert (stand.rows[0].outcome, stand.permits) == (outcome, 0)
            if outcome is Outcome.PUSHBACK:
                assert b"retry-after" in got.headers

    run_virtually(main())


def test_what_the_engine_says_about_retrying_is_passed_on() -> None:
    async def main() -> None:
        answer = json_answer({"error": {"message": "busy"}}, "429 Busy", "retry-after: 17\r\n")
        with stand_for(Engine([answer])) as stand:
            got = await stand.ask(post(chat()))
            assert got.headers[b"retry-after"] == b"17"
            assert b"retry-after-ms" not in got.headers

    run_virtually(main())


# ---- another replica ----------------------------------------------------------------------------


@pytest.mark.parametrize("first", [["close"], [BROKEN], [BUSY], [STREAM_HEAD, 0.1, "close"]])
@pytest.mark.parametrize("body", [chat(), chat(stream=True)])
def test_a_failure_before_the_first_byte_is_tried_once_elsewhere(first: list[Step], body: dict[str, object]) -> None:
    async def main() -> None:
        good: list[Step] = stream_of("a") if "stream" in body else [WHOLE]
        engines = {"bad": Engine(first), "good": Engine(good)}
        with stand_for(engines) as stand:
            for _ in range(4):
                got = await stand.ask(post(body))
                assert got.status == 200
                assert got.headers[b"x-tidegate-replica"] == b"good"
            assert {row.outcome for row in stand.rows} == {Outcome.OK}
            assert {row.attempts for row in stand.rows} >= {2}
            assert len(engines["bad"].requests) >= 1
            assert stand.permits == 0

    run_virtually(main())


def test_a_replica_that_refuses_connections_costs_a_try_elsewhere() -> None:
    async def main() -> None:
        engines = {"bad": Engine([WHOLE]), "good": Engine([WHOLE])}
        engines["bad"].refuses = True
        with stand_for(engines) as stand:
            assert [(await stand.ask(post(chat()))).status for _ in range(4)] == [200] * 4
            assert {row.attempts for row in stand.rows} == {1, 2}

    run_virtually(main())


def test_at_most_one_more_try() -> None:
    async def main() -> None:
        engines = {name: Engine([BROKEN]) for name in ("a", "b", "c")}
        with stand_for(engines) as stand:
            got = await stand.ask(post(chat()))
            assert (got.status, got.error["message"]) == (500, "boom")
            assert sum(len(engine.requests) for engine in engines.values()) == 2

    run_virtually(main())


def test_what_the_client_has_seen_is_never_begun_again() -> None:
    async def main() -> None:
        engines = {name: Engine([STREAM_HEAD + chunk(event("a")), 0.1, "close"]) for name in ("a", "b")}
        with stand_for(engines) as stand:
            got = await stand.ask(post(chat(stream=True)))
            assert got.body.startswith(event("a") + b'data: {"error"')
            assert sum(len(engine.requests) for engine in engines.values()) == 1

    run_virtually(main())


def test_a_lone_replica_that_cannot_be_reached_is_a_502_with_a_time_to_come_back() -> None:
    async def main() -> None:
        engine = Engine([WHOLE])
        engine.refuses = True
        with stand_for(engine) as stand:
            got = await stand.ask(post(chat()))
            assert (got.status, got.error["code"]) == (502, "connect_failed")
            assert got.headers[b"x-should-retry"] == b"true"
            assert stand.permits == 0

    run_virtually(main())


def test_a_dial_that_takes_too_long_is_a_failed_connection() -> None:
    async def main() -> None:
        engine = Engine([WHOLE])
        engine.dial_s = 60.0
        with stand_for(engine) as stand:
            begun_at = stand.loop.time()
            assert (await stand.ask(post(chat()))).error["code"] == "connect_failed"
            assert stand.loop.time() - begun_at == pytest.approx(5.0, abs=0.2)

    run_virtually(main())


# ---- stale connections --------------------------------------------------------------------------


def test_a_reused_connection_that_the_engine_had_closed_is_replaced_without_a_retry() -> None:
    async def main() -> None:
        engine = Engine([WHOLE])
        with stand_for(engine) as stand:
            await stand.ask(post(chat()))
            end = engine.connections[0]
            engine.script = lambda request: ["abort"] if len(engine.requests) == 2 else [WHOLE]
            assert (await stand.ask(post(chat()))).status == 200
            assert (len(engine.requests), len(engine.connections)) == (3, 2)
            assert end.transport is None
            assert [row.attempts for row in stand.rows] == [1, 1]

    run_virtually(main())


def test_a_fresh_connection_that_closes_is_the_engines_failure() -> None:
    async def main() -> None:
        engine = Engine(["abort"])
        with stand_for(engine) as stand:
            assert (await stand.ask(post(chat()))).status == 502
            assert len(engine.requests) == 1

    run_virtually(main())


def test_once_a_byte_has_come_a_reused_connection_is_no_excuse() -> None:
    async def main() -> None:
        engine = Engine([WHOLE])
        with stand_for(engine) as stand:
            await stand.ask(post(chat()))
            engine.script = lambda request: [b"HTTP/1.1 200", 0.1, "close"]
            assert (await stand.ask(post(chat()))).error["code"] == "engine_error"
            assert len(engine.requests) == 2

    run_virtually(main())


# ---- time ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("steps", "body", "code", "after_s", "status"),
    [
        ([100.0, WHOLE], chat(stream=True), "first_byte_timeout", 5.0, 504),
        ([STREAM_HEAD, 100.0], chat(stream=True), "first_byte_timeout", 5.0, 504),
        ([STREAM_HEAD + chunk(event("a")), 100.0], chat(stream=True), "gap_timeout", 3.0, 200),
        ([STREAM_HEAD, *TOKENS], chat(stream=True), "total_timeout", 20.0, 200),
        ([100.0, WHOLE], chat(), "total_timeout", 20.0, 504),
        ([WHOLE[:-9], 100.0], chat(), "gap_timeout", 3.0, 504),
    ],
)
def test_each_phase_of_an_attempt_has_its_time(
    steps: list[Step], body: dict[str, object], code: str, after_s: float, status: int
) -> None:
    async def main() -> None:
        engine = Engine(steps)
        with stand_for(engine, path=TIMEOUTS) as stand:
            begun_at = stand.loop.time()
            got = await stand.ask(post(body))
            assert stand.loop.time() - begun_at == pytest.approx(after_s, abs=0.25)
            assert got.status == status
            assert json.loads(got.body.rpartition(b"data: ")[2] if status == 200 else got.body)["error"]["code"] == code
            await stand.until(lambda: engine.left == 1)
            assert stand.polled == ["r1"]

    run_virtually(main())


def test_an_aborted_attempt_holds_its_slots_until_the_engine_confirms() -> None:
    async def main() -> None:
        capacity = Capacity(sequences=1)
        with stand_for(Engine([100.0, WHOLE]), path=TIMEOUTS, capacity=capacity) as stand:
            client = stand.client()
            client.send(post(chat()))
            await stand.until(lambda: stand.permits == 1)
            assert client.transport is not None
            client.transport.close()
            await stand.until(lambda: bool(stand.rows))
            assert (stand.rows[0].outcome, stand.rows[0].status) == (Outcome.CLIENT_LEFT, 0)
            assert (stand.permits, stand.polled, stand.engines["r1"].left) == (1, ["r1"], 1)
            await stand.until(lambda: stand.permits == 0)

    run_virtually(main())


def test_a_reading_that_shows_the_engine_idle_frees_the_slots_at_once() -> None:
    async def main() -> None:
        with stand_for(Engine([100.0, WHOLE])) as stand:
            client = stand.client()
            client.send(post(chat()))
            await stand.until(lambda: stand.permits == 1)
            assert client.transport is not None
            client.transport.close()
            await stand.until(lambda: bool(stand.rows))
            stand.driver.observe("r1", Reading(at=stand.loop.time() + 0.05, ready=False))
            assert stand.permits == 0

    run_virtually(main())


# ---- clients that leave -------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["close", "abort"])
@pytest.mark.parametrize("when_s", [0.05, 0.5, 1.5, 2.5])
def test_a_client_that_leaves_is_noticed_wherever_its_request_is(how: str, when_s: float) -> None:
    async def main() -> None:
        engine = Engine([1.0, STREAM_HEAD + chunk(event("a")), 5.0, chunk(DONE)])
        engine.dial_s = 1.0
        with stand_for(engine, capacity=Capacity(sequences=1)) as stand:
            clients = [stand.client() for _ in range(3)]
            for client in clients:
                client.send(post(chat(stream=True)))
            await stand.until(lambda: stand.loop.time() >= 1000 + when_s)
            for client in clients:
                assert client.transport is not None
                getattr(client.transport, how)()
            await stand.until(lambda: len(stand.rows) == 3 and stand.permits == 0)
            assert {row.outcome for row in stand.rows} == {Outcome.CLIENT_LEFT}
            assert stand.driver.waiting == 0
            assert engine.left == len(engine.requests)

    run_virtually(main())


def test_a_dial_that_ends_after_its_client_left_serves_the_next_one() -> None:
    async def main() -> None:
        engine = Engine([WHOLE])
        engine.dial_s = 2.0
        with stand_for(engine) as stand:
            client = stand.client()
            client.send(post(chat()))
            await stand.until(lambda: stand.permits == 1)
            assert client.transport is not None
            client.transport.close()
            await stand.until(lambda: len(engine.connections) == 1)
            assert (await stand.ask(post(chat()))).status == 200
            assert (len(engine.connections), len(engine.requests)) == (1, 1)

    run_virtually(main())


# ---- refusals -----------------------------------------------------------------------------------


def test_a_full_queue_refuses_at_once_and_says_when_to_come_back() -> None:
    async def main() -> None:
        path = PathConfig(queue=QueueConfig(max_requests=2), ladder=LadderConfig(enabled=False))
        with stand_for(Engine([3.0, WHOLE]), path=path, capacity=Capacity(sequences=1)) as stand:
            clients = [stand.client() for _ in range(8)]
            for client in clients:
                client.send(post(chat()))
            await stand.until(lambda: sum(bool(client.answers) for client in clients) >= 5)
            refused = [client.answers[0] for client in clients if client.answers]
            assert {got.status for got in refused} == {429}
            assert {got.error["code"] for got in refused} == {"queue_full"}
            assert all(int(got.headers[b"retry-after"]) >= 1 for got in refused)
            assert {got.headers[b"x-should-retry"] for got in refused} == {b"true"}
            assert stand.loop.time() < 1001
            await stand.until(lambda: all(client.answers for client in clients))
            assert sorted(client.answers[0].status for client in clients) == [200] * 3 + [429] * 5

    run_virtually(main())


def test_a_prompt_that_never_fits_is_a_400_that_reaches_no_engine() -> None:
    async def main() -> None:
        engine = Engine([WHOLE])
        with stand_for(engine, capacity=Capacity(context_tokens=100, sequences=4)) as stand:
            got = await stand.ask(post(chat(messages=[{"role": "user", "content": "word " * 1000}])))
            assert (got.status, got.error["code"]) == (400, "context_length_exceeded")
            assert got.headers[b"x-should-retry"] == b"false"
            assert not engine.requests

    run_virtually(main())


def test_a_stored_answer_is_served_where_a_new_one_would_be_refused() -> None:
    async def main() -> None:
        engine = Engine([WHOLE])
        with stand_for(engine, capacity=Capacity(sequences=1), is_cache_enabled=True) as stand:
            first = await stand.ask(post(chat()))
            engine.script = lambda request: [200.0, WHOLE]
            stand.client().send(post(chat(seed=1)))
            await stand.until(lambda: len(engine.requests) == 2)
            again = await stand.ask(post(chat()))
            assert (again.status, again.body) == (200, first.body)
            assert again.headers[b"x-tidegate-degraded"] == b"cache"
            assert again.headers[b"x-tidegate-reason"] == b"queue_timeout"
            assert int(again.headers[b"age"]) >= 9
            other = await stand.ask(post(chat(seed=2)))
            assert other.status == 429

    run_virtually(main())


# ---- the end ------------------------------------------------------------------------------------


def test_draining_refuses_the_queue_and_new_requests_and_lets_the_rest_finish() -> None:
    async def main() -> None:
        with stand_for(Engine([2.0, WHOLE]), capacity=Capacity(sequences=1)) as stand:
            running, waiting, idle = stand.client(), stand.client(), stand.client()
            running.send(post(chat()))
            waiting.send(post(chat()))
            await stand.until(lambda: stand.driver.waiting == 1)
            stand.gateway.drain()
            await stand.until(lambda: bool(waiting.answers) and idle.is_closed)
            assert (waiting.answers[0].status, waiting.answers[0].error["code"]) == (503, "shutting_down")
            assert stand.rows[0].refused is Reason.SHUTTING_DOWN
            late = await stand.ask(post(chat()))
            assert (late.status, late.headers[b"connection"]) == (503, b"close")
            await stand.gateway.emptied()
            assert running.answers[0].status == 200
            assert stand.gateway.open_requests == 0

    run_virtually(main())


def test_what_still_runs_at_the_end_is_cut_and_says_so() -> None:
    async def main() -> None:
        with stand_for(Engine([STREAM_HEAD + chunk(event("a")), 60.0])) as stand:
            stream, silent = stand.client(), stand.client()
            stream.send(post(chat(stream=True)))
            await stand.until(lambda: event("a") in stream.raw)
            stand.engines["r1"].script = lambda request: [60.0]
            silent.send(post(chat()))
            await stand.until(lambda: stand.permits == 2)
            stand.gateway.stop()
            await stand.until(lambda: stream.is_closed and silent.is_closed)
            assert json.loads(stream.answers[0].body.rpartition(b"data: ")[2])["error"]["code"] == "shutdown"
            assert (silent.answers[0].status, silent.answers[0].error["code"]) == (503, "shutdown")
            assert {row.outcome for row in stand.rows} == {Outcome.SHUTDOWN}

    run_virtually(main())


def test_a_reload_takes_effect_for_the_next_request_and_drops_nothing() -> None:
    async def main() -> None:
        engines = {"old": Engine([2.0, WHOLE]), "new": Engine([WHOLE])}
        with stand_for({"old": engines["old"]}) as stand:
            stand.engines.update(engines)
            client = stand.client()
            client.send(post(chat()))
            await stand.until(lambda: len(engines["old"].requests) == 1)
            stand.reload(["new"], Endpoint(name="new", host="h", port=80))
            assert (await stand.ask(post(chat()))).headers[b"x-tidegate-replica"] == b"new"
            await stand.until(lambda: bool(client.answers))
            assert client.answers[0].headers[b"x-tidegate-replica"] == b"old"
            assert stand.permits == 0

    run_virtually(main())
