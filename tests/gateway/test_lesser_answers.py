"""What a client gets instead of a refusal or a failure, as it goes over the wire."""

from __future__ import annotations

import json
from typing import Any

from tests.gateway.stand import (
    STREAM_HEAD,
    WHOLE,
    Engine,
    Step,
    chat,
    chunk,
    event,
    json_answer,
    post,
    stand_for,
    stream_of,
)
from tidegate.gateway.settings import Endpoint
from tidegate.policy.answers import AnswersConfig
from tidegate.policy.ladder import LadderConfig, Rung, SimplifyConfig
from tidegate.policy.limits.per_model import ModelConfig, ModelsConfig
from tidegate.policy.outcomes import Outcome
from tidegate.policy.path_config import PathConfig
from tidegate.policy.timeouts import PhaseConfig, TimeoutsConfig
from tidegate.testing.virtual_loop import run_virtually

UPSTREAMS = {"light": "small"}
ENDPOINTS = (
    Endpoint(name="main", host="127.0.0.1", port=9000),
    Endpoint(name="light", host="127.0.0.1", port=9000, model="small-1b"),
)
PATIENT = TimeoutsConfig(enabled=False, first_byte=PhaseConfig(floor_s=1.0, default_s=2.0, ceiling_s=3.0))


def engines(main: list[Step], light: list[Step]) -> dict[str, Engine]:
    return {"main": Engine(main), "light": Engine(light)}


def with_light(**fields: Any) -> PathConfig:
    return PathConfig(ladder=LadderConfig(light_model="small", **fields), timeouts=PATIENT)


def sent(engine: Engine) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(engine.requests[-1].body)
    return found


def test_what_fails_everywhere_is_answered_by_the_lighter_model_and_says_so() -> None:
    async def main() -> None:
        servers = engines([json_answer({"error": {"message": "boom"}}, "500 Error")], [WHOLE])
        with stand_for(servers, path=with_light(), upstreams=UPSTREAMS, endpoints=ENDPOINTS) as stand:
            got = await stand.ask(post(chat()))
            assert got.status == 200
            assert got.headers[b"x-tidegate-degraded"] == b"light_model"
            assert got.headers[b"x-tidegate-replica"] == b"light"
            assert got.headers[b"x-tidegate-attempts"] == b"2"
            assert sent(servers["light"])["model"] == "small-1b"
            row = stand.rows[-1]
            assert (row.upstream, row.served_by, row.degraded, row.outcome) == ("m", "small", "light_model", Outcome.OK)

    run_virtually(main())


def test_a_first_byte_that_does_not_come_is_answered_by_the_lighter_model() -> None:
    async def main() -> None:
        servers = engines([60.0], stream_of("a", "b"))
        with stand_for(servers, path=with_light(), upstreams=UPSTREAMS, endpoints=ENDPOINTS) as stand:
            got = await stand.ask(post(chat(stream=True)))
            assert (got.status, got.headers[b"x-tidegate-degraded"]) == (200, b"light_model")
            assert got.body.startswith(event("a") + event("b"))
            assert servers["main"].connections[0].was_left
            await stand.until(lambda: stand.permits == 0)

    run_virtually(main())


def test_without_a_lighter_model_the_failure_is_told() -> None:
    async def main() -> None:
        with stand_for(Engine([60.0]), path=PathConfig(timeouts=PATIENT)) as stand:
            got = await stand.ask(post(chat(stream=True)))
            assert (got.status, got.error["code"]) == (504, "first_byte_timeout")
            assert stand.rows[-1].refused is None

    run_virtually(main())


def test_a_stream_that_has_begun_is_not_given_once_more() -> None:
    async def main() -> None:
        servers = engines([STREAM_HEAD + chunk(event("a")), 0.1, "close"], stream_of("x"))
        with stand_for(servers, path=with_light(), upstreams=UPSTREAMS, endpoints=ENDPOINTS) as stand:
            got = await stand.ask(post(chat(stream=True)))
            assert got.body.startswith(event("a") + b'data: {"error"')
            assert servers["light"].requests == []

    run_virtually(main())


def test_a_simpler_answer_is_asked_for_with_less_of_everything() -> None:
    async def main() -> None:
        simplify = SimplifyConfig(max_tokens=50, drop_tools=True, keep_messages=1)
        path = PathConfig(
            ladder=LadderConfig(order=(Rung.SIMPLIFY, Rung.ERROR), simplify=simplify),
            models=ModelsConfig(named={"m": ModelConfig(tokens_per_minute=200)}),
        )
        engine = Engine([WHOLE])
        messages = [
            {"role": "system", "content": "be brief"},
            {"role": "user", "content": "old"},
            {"role": "assistant", "content": "older"},
            {"role": "user", "content": "new"},
        ]
        body = chat(messages=messages, max_tokens=500, max_completion_tokens=500, tools=[{"type": "function"}])
        with stand_for(engine, path=path) as stand:
            got = await stand.ask(post(body))
            assert (got.status, got.headers[b"x-tidegate-degraded"]) == (200, b"simplify_output")
            asked = sent(engine)
            assert (asked["max_tokens"], asked["max_completion_tokens"], "tools" in asked) == (50, 50, False)
            assert [each["content"] for each in asked["messages"]] == ["be brief", "new"]

    run_virtually(main())


def test_a_stored_answer_can_be_served_before_any_engine_is_asked() -> None:
    async def main() -> None:
        engine = Engine([WHOLE])
        path = PathConfig(ladder=LadderConfig(answers=AnswersConfig(serve_first=True)))
        with stand_for(engine, path=path, is_cache_enabled=True) as stand:
            first, again = [await stand.ask(post(chat())) for _ in range(2)]
            assert first.body == again.body
            assert len(engine.requests) == 1
            assert b"x-tidegate-degraded" not in again.headers
            assert again.headers[b"age"] == b"0"
            assert (stand.rows[-1].is_stored, stand.rows[-1].outcome) == (True, None)

    run_virtually(main())


def test_a_lesser_answer_is_not_kept_as_an_answer_of_the_model_that_was_asked() -> None:
    async def main() -> None:
        servers = engines([json_answer({"error": {"message": "boom"}}, "500 Error")], [WHOLE])
        path = with_light(answers=AnswersConfig(serve_first=True))
        with stand_for(servers, path=path, upstreams=UPSTREAMS, endpoints=ENDPOINTS, is_cache_enabled=True) as stand:
            for _ in range(2):
                got = await stand.ask(post(chat()))
                assert got.headers[b"x-tidegate-degraded"] == b"light_model"
            assert len(servers["light"].requests) == 2

    run_virtually(main())
