"""Abnormal input has a defined answer before an engine hears of it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from tests.gateway.stand import WHOLE, Engine, Stand, chat, post, stand_for
from tidegate.gateway.call import Call
from tidegate.gateway.routes import CHAT
from tidegate.policy.abnormal import Handling, InputConfig, OnOverlength, Overlength
from tidegate.policy.reading import Capacity
from tidegate.policy.request import Request
from tidegate.policy.token_source import TokenSource
from tidegate.testing.virtual_loop import run_virtually
from tidegate.wire.body import Body
from tidegate.wire.requests import Incoming

LOOP = "say it again. " * 2000


def said(content: Any) -> dict[str, Any]:
    return chat(messages=[{"role": "user", "content": content}])


def raw(messages: bytes, more: bytes = b"") -> bytes:
    return b'{"model":"m"%b,"messages":%b}' % (more, messages)


HI = b'[{"role":"user","content":"hi"}]'

REFUSED: list[tuple[dict[str, Any] | bytes, str, str]] = [
    (chat(messages=[]), "/v1/chat/completions", "empty_input"),
    ({"model": "m"}, "/v1/chat/completions", "empty_input"),
    (said("  \n"), "/v1/chat/completions", "empty_input"),
    ({"model": "m", "prompt": ""}, "/v1/completions", "empty_input"),
    ({"model": "m", "prompt": []}, "/v1/completions", "empty_input"),
    ({"model": "m", "input": [" "]}, "/v1/embeddings", "empty_input"),
    (said("a\0b"), "/v1/chat/completions", "invalid_chars"),
    (raw(b'[{"role":"user","content":"\xff\xfe"}]'), "/v1/chat/completions", "invalid_chars"),
    (raw(rb'[{"role":"user","content":"\ud800 x"}]'), "/v1/chat/completions", "invalid_chars"),
    (raw(rb'[{"role":"user","content":"\udc00 x"}]'), "/v1/chat/completions", "invalid_chars"),
    (raw(b'[{"role":"user","content":"a\x1bb"}]'), "/v1/chat/completions", "invalid_chars"),
    (raw(HI)[:-1], "/v1/chat/completions", "invalid_json"),
    (raw(b"[" * 100_000), "/v1/chat/completions", "invalid_json"),
    (raw(HI, b',"x":' + b'{"a":' * 50_000), "/v1/chat/completions", "invalid_json"),
    (chat(max_tokens="many"), "/v1/chat/completions", "invalid_json"),
    (chat(max_tokens=1.5), "/v1/chat/completions", "invalid_json"),
    (chat(max_tokens=-2), "/v1/chat/completions", "invalid_value"),
    (chat(max_completion_tokens=-100), "/v1/chat/completions", "invalid_value"),
    (chat(n=0), "/v1/chat/completions", "invalid_value"),
    (chat(n=-1), "/v1/chat/completions", "invalid_value"),
    (chat(n=10**6), "/v1/chat/completions", "invalid_value"),
    (chat(best_of=0), "/v1/chat/completions", "invalid_value"),
    (raw(HI, b',"temperature":NaN'), "/v1/chat/completions", "invalid_json"),
    (raw(HI, b',"temperature":1e999'), "/v1/chat/completions", "invalid_value"),
    (chat(temperature=-0.5), "/v1/chat/completions", "invalid_value"),
    (chat(messages=[{"content": "Hi."}]), "/v1/chat/completions", "invalid_value"),
    (chat(messages=[{"role": "user", "content": "Hi."}, {"content": "Hi."}]), "/v1/chat/completions", "invalid_value"),
    (
        chat(messages=[{"role": 7, "content": [{"type": "text", "text": "Hi."}]}]),
        "/v1/chat/completions",
        "invalid_value",
    ),
    (chat(messages=["Hi."]), "/v1/chat/completions", "invalid_value"),
    (raw(HI, b',"top_p":-1e999'), "/v1/chat/completions", "invalid_value"),
]

PASSED: list[dict[str, Any] | bytes] = [
    said("tab\tline\nreturn\r and \x1b[31mcolours\x1b[0m \u2028 😀"),
    said([{"type": "image_url", "image_url": {"url": "http://host/x.png"}}]),
    chat(max_tokens=-1),
    chat(max_tokens=None, temperature=None, n=1, top_p=1),
    chat(temperature="warm"),
    raw(rb'[{"role":"user","content":"a path: C:\\u0000"}]'),
    chat(temperature=0),
]


async def code_of(stand: Stand, body: dict[str, Any] | bytes, path: str = "/v1/chat/completions") -> tuple[int, str]:
    got = await stand.ask(post(body, path))
    return got.status, got.error["code"] if got.status >= 400 else ""


@pytest.mark.parametrize(("body", "path", "code"), REFUSED)
def test_what_no_engine_should_be_given_is_refused(body: dict[str, Any] | bytes, path: str, code: str) -> None:
    async def main() -> None:
        engine = Engine([WHOLE])
        with stand_for(engine) as stand:
            assert await code_of(stand, body, path) == (400, code)
            assert engine.requests == []
            assert await code_of(stand, chat()) == (200, "")
            assert [row.code for row in stand.rows] == [code, ""]

    run_virtually(main())


@pytest.mark.parametrize("body", PASSED)
def test_what_only_looks_strange_passes_byte_for_byte(body: dict[str, Any] | bytes) -> None:
    async def main() -> None:
        engine = Engine([WHOLE])
        with stand_for(engine) as stand:
            assert await code_of(stand, body) == (200, "")
            assert engine.requests[0].body == (body if isinstance(body, bytes) else json.dumps(body).encode())
            assert stand.rows[0].input_problem == ""

    run_virtually(main())


def test_embeddings_in_the_place_of_a_prompt_are_a_prompt() -> None:
    async def main() -> None:
        with stand_for(Engine([WHOLE])) as stand:
            body = {"model": "m", "prompt_embeds": "QUJD"}
            assert await code_of(stand, body, "/v1/completions") == (200, "")

    run_virtually(main())


def test_a_prompt_that_repeats_itself_is_marked_or_refused() -> None:
    async def main() -> None:
        with stand_for(Engine([WHOLE])) as stand:
            assert await code_of(stand, said(LOOP)) == (200, "")
            assert stand.rows[0].input_problem == "repetitive_input"
            assert await code_of(stand, {"model": "m", "prompt": LOOP}, "/v1/completions") == (200, "")
            assert await code_of(stand, said(" ".join(str(n) for n in range(5000)))) == (200, "")
            assert [row.input_problem for row in stand.rows[1:]] == ["repetitive_input", ""]
        with stand_for(Engine([WHOLE]), input=InputConfig(repetitive=Handling.REJECT)) as stand:
            assert await code_of(stand, said(LOOP)) == (400, "repetitive_input")
        with stand_for(Engine([WHOLE]), input=InputConfig(repetitive=Handling.PASS)) as stand:
            assert await code_of(stand, said(LOOP)) == (200, "")
            assert stand.rows[0].input_problem == ""

    run_virtually(main())


def test_what_is_refused_can_be_chosen() -> None:
    async def main() -> None:
        strict = InputConfig(control_chars=Handling.REJECT)
        with stand_for(Engine([WHOLE]), input=strict) as stand:
            assert await code_of(stand, said("\x1b[31mred")) == (400, "invalid_chars")
            assert await code_of(stand, said("tab\tand line\n")) == (200, "")
        lax = InputConfig(empty=Handling.PASS, invalid_chars=Handling.PASS)
        with stand_for(Engine([WHOLE]), input=lax) as stand:
            assert await code_of(stand, said("")) == (200, "")
            assert await code_of(stand, said("a\0b")) == (200, "")
        with stand_for(Engine([WHOLE]), input=InputConfig(enabled=False)) as stand:
            assert await code_of(stand, said("")) == (200, "")
            assert await code_of(stand, raw(HI)[:-1]) == (400, "invalid_json")
            assert await code_of(stand, raw(b'["\x1b"]')) == (400, "invalid_json")

    run_virtually(main())


# ---- too long -----------------------------------------------------------------------------------

SMALL = Capacity(sequences=8, context_tokens=200)
LONG = [
    {"role": "system", "content": "Be brief."},
    *({"role": ("user", "assistant")[n % 2], "content": f"turn {n} " * 12} for n in range(20)),
    {"role": "user", "content": "And the last question?"},
]
TRUNCATE = {"m": Overlength(action=OnOverlength.TRUNCATE)}


def test_what_is_too_long_is_refused_unless_its_model_says_otherwise() -> None:
    async def main() -> None:
        with stand_for(Engine([WHOLE]), capacity=SMALL) as stand:
            assert await code_of(stand, chat(messages=LONG)) == (400, "context_length_exceeded")

    run_virtually(main())


def test_the_oldest_messages_go_and_the_answer_says_so() -> None:
    async def main() -> None:
        engine = Engine([WHOLE])
        with stand_for(engine, capacity=SMALL, overlength=TRUNCATE) as stand:
            got = await stand.ask(post(chat(messages=LONG, temperature=0.5)))
            assert (got.status, got.headers[b"x-tidegate-degraded"]) == (200, b"truncated_input")
            sent = json.loads(engine.requests[0].body)
            assert sent["messages"][0] == LONG[0]
            assert sent["messages"][-1] == LONG[-1]
            assert 2 < len(sent["messages"]) < len(LONG)
            assert (sent["temperature"], sent["max_tokens"]) == (0.5, 16)
            (row,) = stand.rows
            assert row.degraded == "truncated_input"
            # By the estimate of four bytes a token it fits even if that is a third too low.
            assert len(json.dumps(sent["messages"])) / 4 * 1.3 + 16 <= 200
            assert await code_of(stand, chat()) == (200, "")
            assert stand.rows[1].degraded is None

    run_virtually(main())


def test_a_prompt_loses_its_middle_and_what_cannot_is_refused() -> None:
    async def main() -> None:
        engine = Engine([WHOLE])
        with stand_for(engine, capacity=SMALL, overlength=TRUNCATE) as stand:
            words = " ".join(str(n) for n in range(500))
            assert await code_of(stand, {"model": "m", "prompt": words}, "/v1/completions") == (200, "")
            prompt = json.loads(engine.requests[0].body)["prompt"]
            assert prompt.startswith("0 1 2")
            assert prompt.endswith("498 499")
            assert len(prompt) < 500
            for prompts in ([words, words], list(range(500))):
                found = await code_of(stand, {"model": "m", "prompt": prompts}, "/v1/completions")
                assert found == (400, "context_length_exceeded")
            parts = [{"role": "user", "content": [{"type": "text", "text": words}]}]
            assert await code_of(stand, chat(messages=parts)) == (400, "context_length_exceeded")

    run_virtually(main())


def test_what_is_too_long_goes_to_the_model_that_takes_it() -> None:
    async def main() -> None:
        small, large = Engine([WHOLE]), Engine([WHOLE])
        rules = {"m": Overlength(action=OnOverlength.ROUTE_LONG, long_to="wide")}
        engines = {"r1": small, "r2": large}
        with stand_for(engines, upstreams={"r2": "wide"}, capacity=SMALL, overlength=rules) as stand:
            assert await code_of(stand, chat(messages=LONG)) == (400, "context_length_exceeded")
            first, second = stand.path.config.replicas
            wider = replace(second, capacity=Capacity(sequences=8, context_tokens=8000))
            stand.driver.apply(replace(stand.path.config, replicas=(first, wider)))
            got = await stand.ask(post(chat(messages=LONG)))
            assert (got.status, got.headers[b"x-tidegate-degraded"]) == (200, b"route_long")
            assert json.loads(large.requests[0].body)["messages"] == LONG
            assert await code_of(stand, chat()) == (200, "")
            assert [row.upstream for row in stand.rows] == ["wide", "wide", "m"]
            assert [row.degraded for row in stand.rows] == [None, "route_long", None]

    run_virtually(main())


def test_what_was_counted_for_one_model_is_not_taken_for_another() -> None:
    async def main() -> None:
        rules = {"m": Overlength(action=OnOverlength.ROUTE_LONG, long_to="wide")}
        with stand_for(Engine([WHOLE]), capacity=SMALL, overlength=rules) as stand:
            assert await code_of(stand, chat(messages=LONG)) == (404, "model_not_found")
            exact = {"model": "m", "prompt": list(range(500))}
            assert await code_of(stand, exact, "/v1/completions") == (404, "model_not_found")
            request = stand.noted.offered[-1]
            assert (request.upstream, request.prompt_tokens, request.prompt_exact) == ("wide", 500, True)
            overlengths = stand.gateway._shared.overlengths
            assert overlengths is not None
            tokenized = Request(9, "m", 0.0, 0, 300, True, counted_tokens=300, counted_by=TokenSource.TOKENIZER)
            body = json.dumps(chat(messages=LONG)).encode()
            overlengths.fit(tokenized, Call(Incoming(b"POST", b"/", []), CHAT, b"x", Body(body)))
            assert (tokenized.upstream, tokenized.prompt_exact, tokenized.counted_tokens) == ("wide", False, None)

    run_virtually(main())
