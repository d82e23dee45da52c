"""Of a llama.cpp whole answers are asked for as streams, which no client sees. In memory and in virtual time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.gateway.stand import (
    DONE,
    STREAM_END,
    STREAM_HEAD,
    WHOLE,
    Engine,
    Stand,
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
from tidegate.gateway.settings import Endpoint
from tidegate.policy.outcomes import Outcome
from tidegate.policy.output.output_config import OutputConfig
from tidegate.policy.output.problem import Action
from tidegate.policy.reading import Capacity
from tidegate.testing.memory_transport import every
from tidegate.testing.virtual_loop import run_virtually

STREAM: list[Step] = [
    STREAM_HEAD,
    chunk(event("Hel")),
    0.1,
    chunk(event("lo")),
    chunk(usage_event(7, 3)) + chunk(DONE) + STREAM_END,
]


@contextmanager
def stand(*engines: Engine, **changes: Any) -> Iterator[Stand]:
    """Replicas r0, r1 …, each a llama.cpp."""
    named = {f"r{number}": engine for number, engine in enumerate(engines)}
    endpoints = tuple(Endpoint(name=name, host="h", port=1, kind="llamacpp") for name in named)
    with stand_for(named, endpoints=endpoints, **changes) as made:
        yield made


def test_a_whole_answer_is_asked_for_as_a_stream_and_comes_back_whole() -> None:
    async def main() -> None:
        engine = Engine(STREAM, split=every(1))
        with stand(engine) as at:
            got = await at.ask(post(chat()))
            assert (got.status, got.headers[b"content-type"]) == (200, b"application/json; charset=utf-8")
            assert got.headers[b"x-tidegate-replica"] == b"r0"
            answer = json.loads(got.body)
            assert answer["choices"][0]["message"] == {"content": "Hello"}
            assert answer["usage"] == {"prompt_tokens": 7, "completion_tokens": 3}
            asked = json.loads(engine.requests[0].body)
            assert (asked["stream"], asked["stream_options"]) == (True, {"include_usage": True})
            row = at.rows[0]
            assert (row.outcome, row.streaming, row.prompt_tokens, row.output_tokens) == (Outcome.OK, False, 7, 3)
            assert at.permits == 0
            assert (await at.ask(post(chat()))).status == 200
            assert len(engine.connections) == 1

    run_virtually(main())


@pytest.mark.parametrize(
    "body",
    [
        chat(n=2),
        chat(tools=[{"type": "function"}]),
        chat(functions=[{}]),
        {"model": "m", "prompt": "a", "best_of": 2},
        {"model": "m", "prompt": ["a", "b"]},
    ],
)
def test_what_would_come_out_otherwise_is_asked_for_as_it_is(body: dict[str, Any]) -> None:
    async def main() -> None:
        engine = Engine([WHOLE])
        with stand(engine) as at:
            path = "/v1/completions" if "prompt" in body else "/v1/chat/completions"
            assert (await at.ask(post(body, path))).status == 200
            assert "stream" not in json.loads(engine.requests[0].body)

    run_virtually(main())


def test_a_stream_of_the_clients_own_passes_unchanged() -> None:
    async def main() -> None:
        with stand(Engine(stream_of("a", "b"))) as at:
            assert (await at.ask(post(chat(stream=True)))).body == event("a") + event("b") + DONE

    run_virtually(main())


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (json_answer({"error": {"message": "too long"}}, "400 Bad"), 400),
        (json_answer({"choices": []}), 200),
    ],
)
def test_an_answer_that_is_no_stream_passes_as_it_comes(answer: bytes, status: int) -> None:
    async def main() -> None:
        with stand(Engine([answer], split=every(40))) as at:
            got = await at.ask(post(chat()))
            assert (got.status, got.body) == (status, answer.partition(b"\r\n\r\n")[2])

    run_virtually(main())


BROKEN: list[list[Step]] = [
    [STREAM_HEAD + chunk(event("a")), 0.1, "close"],
    [STREAM_HEAD + chunk(event("a")) + STREAM_END],
    [STREAM_HEAD + chunk(b'data: {"error": {"message": "boom"}}\n\n') + STREAM_END],
]


@pytest.mark.parametrize("steps", BROKEN)
def test_a_stream_that_breaks_is_an_error_and_never_half_an_answer(steps: list[Step]) -> None:
    async def main() -> None:
        with stand(Engine(steps)) as at:
            got = await at.ask(post(chat()))
            assert (got.status, got.error["code"]) == (502, "engine_error")
            assert (at.rows[0].outcome, at.permits) == (Outcome.ENGINE_ERROR, 0)

    run_virtually(main())


@pytest.mark.parametrize("steps", BROKEN)
def test_since_the_client_has_seen_nothing_another_replica_may_answer(steps: list[Step]) -> None:
    async def main() -> None:
        bad, good = Engine(steps), Engine(STREAM)
        with stand(bad, good) as at:
            for _ in range(3):
                assert json.loads((await at.ask(post(chat()))).body)["choices"][0]["message"] == {"content": "Hello"}
            assert bad.requests
            assert at.permits == 0

    run_virtually(main())


def test_a_client_that_leaves_ends_the_stream_at_the_engine() -> None:
    async def main() -> None:
        engine = Engine([STREAM_HEAD + chunk(event("a")), 60.0])
        with stand(engine, capacity=Capacity(sequences=1)) as at:
            client = at.client()
            client.send(post(chat()))
            await at.until(lambda: len(engine.requests) == 1)
            assert client.transport is not None
            client.transport.close()
            await at.until(lambda: engine.left == 1)
            assert at.rows[0].outcome is Outcome.CLIENT_LEFT
            await at.until(lambda: at.permits == 0)

    run_virtually(main())


@pytest.mark.parametrize("action", [Action.STOP, Action.DEGRADE])
def test_an_answer_that_will_be_an_error_anyhow_is_not_written_to_its_end(action: Action) -> None:
    async def main() -> None:
        engine = Engine([STREAM_HEAD, *[each for _ in range(5000) for each in (0.01, chunk(event("no, ")))]])
        with stand(engine, output=OutputConfig(repetitive=action)) as at:
            got = await at.ask(post(chat()))
            assert (got.status, got.error["code"]) == (502, "output_repetitive")
            await at.until(lambda: engine.left == 1)
            await at.until(lambda: at.permits == 0)
            (row,) = at.rows
            assert (row.outcome, row.output_problem) == (Outcome.INVALID_OUTPUT, "output_repetitive")
            assert 256 <= row.output_tokens < 300
            assert at.polled == ["r0"]

    run_virtually(main())


def test_where_the_client_would_get_it_all_the_same_it_is_written_to_its_end() -> None:
    async def main() -> None:
        steps: list[Step] = [STREAM_HEAD, *[chunk(event("no, "))] * 600, chunk(usage_event(7, 600) + DONE) + STREAM_END]
        with stand(Engine(steps)) as at:
            got = await at.ask(post(chat()))
            assert got.headers[b"x-tidegate-output"] == b"output_repetitive"
            assert json.loads(got.body)["choices"][0]["message"]["content"] == "no, " * 600
        broken: list[Step] = [STREAM_HEAD, *[chunk(b"data: {\n\n")] * 40, 0.1, chunk(DONE) + STREAM_END]
        with stand(Engine(broken), output=OutputConfig(garbled=Action.STOP)) as at:
            assert (await at.ask(post(chat()))).error["code"] == "engine_error"

    run_virtually(main())
