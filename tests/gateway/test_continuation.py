"""A stream whose replica dies and that another goes on with: one stream for the client, wherever it was cut.

The engines here are scripted llama.cpp and vLLM servers, with chunks as the real ones write them. They answer by what
they are asked: whoever is sent the beginning of the answer writes the rest of it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.gateway.stand import (
    DONE,
    STREAM_END,
    STREAM_HEAD,
    Engine,
    Got,
    Stand,
    Step,
    chat,
    chunk,
    json_answer,
    post,
    stand_for,
)
from tidegate.gateway.continuation import LONGEST_TAIL_BYTES, terms_of
from tidegate.gateway.settings import Endpoint
from tidegate.policy.outcomes import Outcome
from tidegate.policy.path_config import PathConfig
from tidegate.policy.reading import Capacity
from tidegate.policy.retries import RetriesConfig
from tidegate.testing.virtual_loop import run_virtually
from tidegate.wire.body import Body
from tidegate.wire.chunks import data_of, events_in
from tidegate.wire.requests import Incoming

WORDS = ["Once", " upon", " a", " time", ",", " 字", "\n", '"there"', " was", " 😀."]
TEXT = "".join(WORDS)
PROMPT_TOKENS = 7
PROMPT_IDS = list(range(1, PROMPT_TOKENS + 1))
USAGE: dict[str, Any] = {"stream_options": {"include_usage": True}}
CONTINUED = b": tidegate continued on "


def sse(**fields: Any) -> bytes:
    return b"data: " + json.dumps(fields, ensure_ascii=False).encode() + b"\n\n"


@dataclass
class Writer:
    """Writes what is left of ``WORDS`` after the text, or the ids, that it is sent."""

    number: int
    is_vllm: bool = False

    def written(self, asked: dict[str, Any]) -> int:
        """How many words there are already."""
        if "messages" in asked:
            last = asked["messages"][-1]
            sent = last["content"] if last["role"] == "assistant" else ""
        elif isinstance(asked["prompt"], list):
            assert asked["prompt"][:PROMPT_TOKENS] == PROMPT_IDS
            ids = asked["prompt"][PROMPT_TOKENS:]
            assert ids == list(range(100, 100 + len(ids)))
            return len(ids)
        else:
            assert asked["prompt"].startswith("Tell: ")
            sent = asked["prompt"].removeprefix("Tell: ")
        counts = [count for count in range(len(WORDS) + 1) if "".join(WORDS[:count]) == sent]
        assert counts, f"{sent!r} is no beginning of the answer"
        return counts[0]

    def events(self, request: Incoming) -> list[bytes]:
        asked = json.loads(request.body)
        is_chat = "messages" in asked
        assert request.target == (b"/v1/chat/completions" if is_chat else b"/v1/completions")
        start = self.written(asked)
        most = asked.get("max_tokens") or asked.get("max_completion_tokens") or 99
        words = WORDS[start : start + most]
        reason = "length" if len(words) == most else "stop"
        asks_ids = asked.get("return_token_ids", False)
        prompt_ids = {"prompt_token_ids": [*PROMPT_IDS, *range(100, 100 + start)]} if asks_ids else {}
        found = []
        if is_chat:
            role = {"role": "assistant", "content": "" if self.is_vllm else None}
            found.append(self.chunk(is_chat, {"delta": role}, None, **prompt_ids))
        for at, word in enumerate(words, start):
            choice: dict[str, Any] = {"delta": {"content": word}} if is_chat else {"text": word}
            if asks_ids:
                choice["token_ids"] = [100 + at]
                if not is_chat and at == start:
                    choice |= prompt_ids
            found.append(self.chunk(is_chat, choice, None))
        found.append(self.chunk(is_chat, {"delta": {}} if is_chat else {"text": ""}, reason))
        if asked.get("stream_options", {}).get("include_usage"):
            usage = {"prompt_tokens": PROMPT_TOKENS + start, "completion_tokens": len(words)}
            found.append(sse(**self.head(is_chat), choices=[], usage=usage | {"total_tokens": sum(usage.values())}))
        return [*found, DONE]

    def head(self, is_chat: bool) -> dict[str, Any]:
        kind = "chat.completion.chunk" if is_chat else "text_completion"
        return {"id": f"id-{self.number}", "created": self.number, "model": "m", "object": kind}

    def chunk(self, is_chat: bool, choice: dict[str, Any], reason: str | None, **fields: Any) -> bytes:
        return sse(**self.head(is_chat), choices=[{"index": 0, **choice, "finish_reason": reason}], **fields)

    def whole(self, request: Incoming) -> list[Step]:
        return [STREAM_HEAD, *(chunk(event) for event in self.events(request)), STREAM_END]

    def cut_at(self, at: int, how: str = "abort") -> Engine:
        """Dies after so many bytes of its events."""

        def script(request: Incoming) -> list[Step]:
            return [STREAM_HEAD, chunk(b"".join(self.events(request))[:at]) if at else b"", 0.05, how]

        return Engine(script)

    def engine(self) -> Engine:
        return Engine(self.whole)


def pair(
    first: Engine, second: Engine | None = None, kind: str = "llamacpp", mode: str = "text", **changes: Any
) -> Any:
    engines = {"r1": first, "r2": second or Writer(2, kind == "vllm").engine()}
    engines |= changes.pop("more", {})
    endpoints = tuple(Endpoint(name=name, host="h", port=1, kind=kind) for name in engines)
    capacity = changes.pop("capacity", Capacity(sequences=64, context_tokens=4096))
    return stand_for(engines, endpoints=endpoints, continuation={"m": mode}, capacity=capacity, **changes)


def asking(is_chat: bool = True, **fields: Any) -> bytes:
    if is_chat:
        return post(chat(stream=True, **{"max_tokens": None, **fields}))
    return post({"model": "m", "prompt": "Tell: ", "stream": True, "max_tokens": 99, **fields}, "/v1/completions")


def chunks_of(body: bytes) -> list[dict[str, Any]]:
    found = [data_of(event) for event in events_in(body)]
    return [json.loads(data) for data in found if data is not None and data != b"[DONE]"]


def text_of(body: bytes) -> str:
    choices = [choice for each in chunks_of(body) for choice in each["choices"]]
    return "".join(
        (choice["delta"].get("content") if "delta" in choice else choice["text"]) or "" for choice in choices
    )


def check_one_stream(body: bytes, is_chat: bool = True, usage: tuple[int, int] | None = None) -> None:
    """``body`` is one regular stream with the whole answer in it."""
    assert body.endswith(DONE)
    assert body.count(b"[DONE]") == 1
    chunks = chunks_of(body)
    assert text_of(body) == TEXT
    assert len({(each["id"], each["created"], each["model"], each["object"]) for each in chunks}) == 1
    assert sum("role" in choice.get("delta", ()) for each in chunks for choice in each["choices"]) == int(is_chat)
    reasons = [choice["finish_reason"] for each in chunks for choice in each["choices"] if choice.get("finish_reason")]
    assert reasons == ["stop"]
    assert b"token_ids" not in body
    told = [each["usage"] for each in chunks if each.get("usage")]
    assert [(each["prompt_tokens"], each["completion_tokens"]) for each in told] == ([usage] if usage else [])


def incoming_of(target: bytes, body: bytes) -> Incoming:
    incoming = Incoming(b"POST", target, [])
    incoming.body = body
    return incoming


def sample(is_chat: bool, is_vllm: bool, **fields: Any) -> bytes:
    """All bytes of an undisturbed stream."""
    head, _, body = asking(is_chat, **fields).partition(b"\r\n\r\n")
    target = head.split(b" ")[1]
    return b"".join(Writer(1, is_vllm).events(incoming_of(target, body)))


FORMS = [("llamacpp", "text", True), ("llamacpp", "text", False), ("vllm", "text", False)]
FORMS += [("vllm", "exact", True), ("vllm", "exact", False)]


@pytest.mark.parametrize(("kind", "mode", "is_chat"), FORMS)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_wherever_it_is_cut_the_client_has_one_stream(kind: str, mode: str, is_chat: bool, data: st.DataObject) -> None:
    ids = {"return_token_ids": True} if mode == "exact" else {}
    wants_usage = data.draw(st.booleans())
    fields: dict[str, Any] = USAGE if wants_usage else {}
    whole = sample(is_chat, kind == "vllm", **fields, **ids)
    # Up to the chunk that says why the answer ends: what is cut after it has nothing left to write.
    at = data.draw(st.integers(0, whole.index(b'"stop"')))

    async def main() -> None:
        first = Writer(1, kind == "vllm").cut_at(at, data.draw(st.sampled_from(["abort", "close"])))
        with pair(first, kind=kind, mode=mode) as stand:
            got = await stand.ask(asking(is_chat, **fields))
            assert got.status == 200
            check_one_stream(got.body, is_chat, (PROMPT_TOKENS, len(WORDS)) if wants_usage else None)
            row = stand.rows[0]
            assert (row.outcome, row.attempts, row.output_tokens > 0) == (Outcome.OK, 2, True)
            assert stand.permits == 0
            if wants_usage:
                assert (row.prompt_tokens, row.output_tokens) == (PROMPT_TOKENS, len(WORDS))

    run_virtually(main())


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_it_may_be_cut_twice(data: st.DataObject) -> None:
    end = sample(True, False).index(b'"stop"')
    at, then = data.draw(st.integers(0, end)), data.draw(st.integers(0, end))

    async def main() -> None:
        others = {"r3": Writer(3).engine()}
        with pair(Writer(1).cut_at(at), Writer(2).cut_at(then), more=others) as stand:
            got = await stand.ask(asking(**USAGE))
            if b'"error"' not in got.body:
                check_one_stream(got.body, usage=(PROMPT_TOKENS, len(WORDS)))
            else:
                # A dead one may be tried again, so that three attempts may not do; nor does one that lacks a usage.
                assert DONE not in got.body
                if got.status == 200:
                    assert TEXT.startswith(text_of(got.body[: got.body.index(b'data: {"error"')]))
            assert stand.permits == 0

    run_virtually(main())


async def ask(stand: Stand, **fields: Any) -> Got:
    return await stand.ask(asking(**fields))


AFTER_THREE = sample(True, False).index(b" time")
"""In the middle of the chunk with the fourth word."""


def test_the_client_is_told_where_it_goes_on_and_the_next_replica_what_there_is() -> None:
    async def main() -> None:
        second = Writer(2).engine()
        with pair(Writer(1).cut_at(AFTER_THREE), second) as stand:
            got = await ask(stand, max_tokens=20)
            assert got.headers[b"x-tidegate-replica"] == b"r1"
            assert got.body.count(CONTINUED + b"r2\n\n") == 1
            before = got.body.split(CONTINUED)[0]
            assert text_of(before) == "Once upon a"
            sent = json.loads(second.requests[0].body)
            assert sent["messages"][-1] == {"role": "assistant", "content": "Once upon a"}
            assert sent["max_tokens"] == 17
            row = stand.rows[0]
            assert (row.attempts, row.replica, row.code) == (2, "r2", "")
            assert (row.continuations, row.continued_from) == (1, "r1")

    run_virtually(main())


@pytest.mark.parametrize("fields", [{}, USAGE])
def test_the_tenant_pays_for_the_prompt_once_and_nothing_is_learned_of_it(fields: dict[str, Any]) -> None:
    async def main() -> None:
        rows, learned = [], []
        messages = [{"role": "user", "content": "word " * 80}]
        for first in (Writer(1).engine(), Writer(1).cut_at(AFTER_THREE)):
            # So many that they can be learned from.
            with pair(first) as stand, patch(f"{__name__}.PROMPT_TOKENS", 70):
                before = stand.gateway._shared.ratios.tokens("m", Body(json.dumps(chat(messages=messages)).encode()))
                await ask(stand, messages=messages, **fields)
                after = stand.gateway._shared.ratios.tokens("m", Body(json.dumps(chat(messages=messages)).encode()))
                learned.append(after != before)
                rows.append(stand.rows[0])
        assert learned == [bool(fields), False]
        whole, continued = rows
        assert continued.continuations == 1
        assert continued.prompt_tokens == whole.prompt_tokens
        if fields:
            assert continued.output_tokens == whole.output_tokens

    run_virtually(main())


def test_a_bound_that_the_gateway_wrote_counts_what_both_wrote() -> None:
    async def main() -> None:
        second = Writer(2).engine()
        reserving: dict[str, Any] = {
            "capacity": Capacity(sequences=64, context_tokens=4096, kv_tokens=65536, slot_tokens=256)
        }
        with pair(Writer(1).cut_at(AFTER_THREE), second, **reserving) as stand:
            first = stand.engines["r1"]
            check_one_stream((await ask(stand)).body)
            bound = json.loads(first.requests[0].body)["max_tokens"]
            assert json.loads(second.requests[0].body)["max_tokens"] == bound - 3

    run_virtually(main())


def test_a_bound_counts_what_both_wrote() -> None:
    async def main() -> None:
        with pair(Writer(1).cut_at(AFTER_THREE)) as stand:
            got = await ask(stand, max_tokens=5, **USAGE)
            assert text_of(got.body) == "".join(WORDS[:5])
            assert b'"length"' in got.body
            assert chunks_of(got.body)[-1]["usage"]["completion_tokens"] == 5

    run_virtually(main())


def error_of(got: Got) -> str:
    """Of a stream that ended with an error: in order, and without [DONE]."""
    assert got.status == 200
    assert DONE not in got.body
    error = json.loads(data_of(list(events_in(got.body))[-1]) or b"")["error"]
    return f"{error.get('code')}: {error['message']}"


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"response_format": {"type": "json_object"}}, "it asks for response_format"),
        ({"tools": [{"type": "function", "function": {"name": "f"}}]}, "it asks for tools"),
        ({"guided_regex": "a*"}, "what guided_regex means to it is not known"),
        ({"frequency_penalty": 0.2}, "it asks for frequency_penalty"),
        ({"max_tokens": 3}, "all that was asked for is written"),
        ({"messages": [{"role": "assistant", "content": "Once"}]}, "its last message is the assistant's own"),
    ],
)
def test_what_is_not_safe_ends_with_an_error_that_says_why(fields: dict[str, Any], why: str) -> None:
    async def main() -> None:
        second = Writer(2).engine()
        with pair(Writer(1).cut_at(AFTER_THREE), second) as stand:
            got = await ask(stand, **fields)
            assert error_of(got).startswith("cut:")
            assert why in error_of(got)
            assert text_of(got.body.split(b'data: {"error"')[0]) in ("Once upon a", " upon a time")
            assert not second.requests
            assert stand.rows[0].outcome is Outcome.CUT

    run_virtually(main())


def test_nothing_is_kept_where_nothing_goes_on() -> None:
    """Off, one replica, engines of which nobody knows how, a vLLM's chat as text, and a call that is whole."""
    assert terms_of("off", {"vllm"}, 2, None) is None
    assert terms_of("text", {"vllm"}, 1, None) is None
    assert terms_of("text", {"vllm", "llamacpp"}, 2, None) is None
    assert terms_of("text", {"openai"}, 2, None) is None

    async def main() -> None:
        for kind, mode in (("openai", "text"), ("llamacpp", "off"), ("vllm", "text"), ("llamacpp", "exact")):
            with pair(Writer(1, kind == "vllm").cut_at(AFTER_THREE), kind=kind, mode=mode) as stand:
                assert error_of(await ask(stand)).startswith("cut:")
        with pair(Engine([json_answer({"choices": []})])) as stand:
            assert (await stand.ask(post(chat()))).status == 200

    run_virtually(main())


def test_an_engine_that_falls_silent_is_left_and_another_goes_on() -> None:
    async def main() -> None:
        events = Writer(1).events

        def stalls(request: Incoming) -> list[Step]:
            return [STREAM_HEAD, *(chunk(each) for each in events(request)[:4]), 1000.0]

        first = Engine(stalls)
        with pair(first) as stand:
            got = await stand.ask(asking(**USAGE), within_s=900)
            check_one_stream(got.body, usage=(PROMPT_TOKENS, len(WORDS)))
            assert first.left == 1
            assert stand.rows[0].longest_gap_s > 10

    run_virtually(main())


def failing(code: int, after: int = 4) -> Engine:
    """Reports its own failure as an event, as a vLLM does whose engine died."""
    error = b'data: {"error":{"message":"EngineCore encountered an issue","type":"X","code":%d}}\n\n' % code

    def script(request: Incoming) -> list[Step]:
        events = Writer(1).events(request)[:after]
        return [STREAM_HEAD, chunk(b"".join(events) + error + DONE) + STREAM_END]

    return Engine(script)


def test_an_engine_that_reports_its_own_failure_is_left_too() -> None:
    async def main() -> None:
        with pair(failing(500)) as stand:
            check_one_stream((await ask(stand)).body)
        with pair(failing(400)) as stand:
            got = await ask(stand)
            assert b'"code":400' in got.body
            assert DONE not in got.body
            assert text_of(got.body.split(b'data: {"error"')[0]) == "Once upon a"
        with pair(failing(500, after=0)) as stand:
            got = await ask(stand)
            assert got.status == 200
            assert b"EngineCore" in got.body
            assert stand.rows[0].outcome is Outcome.ENGINE_ERROR

    run_virtually(main())


def test_an_engine_that_stops_regularly_in_the_middle_is_gone_on_after() -> None:
    async def main() -> None:
        def stops(request: Incoming) -> list[Step]:
            return [STREAM_HEAD, chunk(b"".join(Writer(1).events(request)[:4])) + STREAM_END]

        with pair(Engine(stops)) as stand:
            check_one_stream((await ask(stand)).body)

    run_virtually(main())


def test_an_answer_that_lacks_only_its_end_is_ended() -> None:
    async def main() -> None:
        at = len(sample(True, False)) - len(DONE)
        second = Writer(2).engine()
        for less in (0, 3):
            with pair(Writer(1).cut_at(at + less), second) as stand:
                got = await ask(stand)
                check_one_stream(got.body)
                assert stand.rows[0].outcome is Outcome.OK
        assert not second.requests
        # A usage that was asked for cannot be made up.
        with pair(Writer(1).cut_at(at), second) as stand:
            assert "but for the usage" in error_of(await ask(stand, **USAGE))

    run_virtually(main())


def test_an_end_without_an_empty_line_after_it_reaches_the_client() -> None:
    async def main() -> None:
        def ends(request: Incoming) -> list[Step]:
            return [STREAM_HEAD, chunk(b"".join(Writer(1).events(request)).rstrip(b"\n")) + STREAM_END]

        with pair(Engine(ends)) as stand:
            got = await ask(stand)
            assert got.body.endswith(b"data: [DONE]")
        with pair(Writer(1).cut_at(AFTER_THREE), Engine(ends)) as stand:
            check_one_stream((await ask(stand)).body)

    run_virtually(main())


def test_no_room_elsewhere_no_allowance_and_replicas_that_are_all_dead() -> None:
    async def main() -> None:
        none_left = PathConfig(retries=RetriesConfig(enabled=False))
        with pair(Writer(1).cut_at(AFTER_THREE), path=none_left) as stand:
            assert "no other replica takes it: retry_allowance" in error_of(await ask(stand))
        second = Writer(2).engine()
        second.refuses = True
        with pair(Writer(1).cut_at(AFTER_THREE), second) as stand:
            # The first one lives, and is asked for the rest, of which it writes as many bytes again.
            assert "no other replica takes it: retry_allowance" in error_of(await ask(stand))
            assert stand.permits == 0
        with pair(Writer(1).cut_at(AFTER_THREE), second, more={"r3": Writer(3).engine()}) as stand:
            check_one_stream((await ask(stand)).body)

    run_virtually(main())


def test_a_replica_that_refuses_the_rest_leaves_the_client_with_an_error() -> None:
    async def main() -> None:
        refusing = Engine([json_answer({"error": {"message": "no prefill"}}, "400 Bad Request")])
        with pair(Writer(1).cut_at(AFTER_THREE), refusing) as stand:
            assert "no prefill" in error_of(await ask(stand))
            assert stand.rows[0].outcome is Outcome.CLIENT_FAULT
        whole = Engine([json_answer({"choices": [{"text": "hi"}]})])
        with pair(Writer(1).cut_at(AFTER_THREE), whole) as stand:
            assert error_of(await ask(stand)).startswith(("invalid_output", "cut"))

    run_virtually(main())


def test_a_client_that_leaves_at_the_seam_leaves_nothing_behind() -> None:
    async def main() -> None:
        second = Engine([0.5, STREAM_HEAD, STREAM_END])
        with pair(Writer(1).cut_at(AFTER_THREE), second) as stand:
            client = stand.client()
            client.send(asking())
            await stand.until(lambda: bool(second.requests))
            assert client.transport is not None
            client.transport.abort()
            await stand.until(lambda: bool(stand.rows))
            assert stand.rows[0].outcome is Outcome.CLIENT_LEFT
            assert second.left == 1

    run_virtually(main())


def test_an_event_too_long_to_be_held_back_goes_out_and_its_stream_nowhere_else() -> None:
    async def main() -> None:
        def script(request: Incoming) -> list[Step]:
            events = Writer(1).events(request)
            long = sse(choices=[{"index": 0, "delta": {"content": "x" * (2 * LONGEST_TAIL_BYTES)}}])
            pieces = [chunk(long[at : at + 50_000]) for at in range(0, len(long), 50_000)]
            return [STREAM_HEAD, *(chunk(each) for each in events[:4]), *pieces, chunk(b"data: {"), 0.05, "abort"]

        with pair(Engine(script)) as stand:
            got = await ask(stand)
            assert b"too long to be held back" in got.body
            assert got.body.count(b"x" * (2 * LONGEST_TAIL_BYTES)) == 1

    run_virtually(main())


def test_exact_streams_are_asked_for_ids_and_clients_never_see_them() -> None:
    async def main() -> None:
        first, second = Writer(1, True).cut_at(AFTER_THREE + 400), Writer(2, True).engine()
        with pair(first, second, "vllm", "exact") as stand:
            got = await ask(stand, max_completion_tokens=50)
            check_one_stream(got.body)
            assert json.loads(first.requests[0].body)["return_token_ids"] is True
            sent = json.loads(second.requests[0].body)
            assert sent["prompt"][:PROMPT_TOKENS] == PROMPT_IDS
            assert "messages" not in sent
            assert sent["max_tokens"] == 50 - (len(sent["prompt"]) - PROMPT_TOKENS)
            # What could not be continued is not asked for ids, and its bytes are the engine's own.
            await ask(stand, stop=["x"])
            assert "return_token_ids" not in json.loads(second.requests[-1].body)

    run_virtually(main())


def test_an_engine_that_tells_no_ids_is_not_gone_on_after() -> None:
    async def main() -> None:
        def silent(request: Incoming) -> list[Step]:
            asked = {**json.loads(request.body), "return_token_ids": False}
            other = incoming_of(request.target, json.dumps(asked).encode())
            return [STREAM_HEAD, chunk(b"".join(Writer(1, True).events(other)[:4])), 0.05, "abort"]

        with pair(Engine(silent), kind="vllm", mode="exact") as stand:
            assert "did not tell the token ids" in error_of(await ask(stand))
        blind = Writer(1, True).cut_at(AFTER_THREE + 400)
        with stand_for({"r1": blind, "r2": Writer(2, True).engine()}, **without_context()) as stand:
            assert "context is not known" in error_of(await ask(stand))

    run_virtually(main())


def without_context() -> dict[str, Any]:
    endpoints = tuple(Endpoint(name=name, host="h", port=1, kind="vllm") for name in ("r1", "r2"))
    return {"endpoints": endpoints, "continuation": {"m": "exact"}}
