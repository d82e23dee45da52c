from __future__ import annotations

import asyncio
import json

import pytest

from tests.engines.pages import LLAMACPP, Answers, Page, Pages, recorded, serving
from tidegate.engines.llamacpp.server import LOOK_EVERY_S, LlamaServer
from tidegate.errors import EngineError
from tidegate.policy.reading import Capacity, Reading


def read(**changed: Answers | None) -> Reading:
    async def ask() -> Reading:
        async with serving(LLAMACPP, **changed) as pages:
            return await LlamaServer(pages.address).read(5.0)

    return asyncio.run(ask())


def test_a_reading_carries_what_slots_and_metrics_say() -> None:
    assert read() == Reading(at=5.0, running=4, waiting=2, kv_used_tokens=4 * 2048)


def test_only_running_sequences_hold_their_part_of_the_kv() -> None:
    _, slots = recorded("llamacpp_slots.json")
    fewer = slots.replace(b'"is_processing":true', b'"is_processing":false', 3)
    reading = read(slots=(200, fewer))
    assert (reading.running, reading.kv_used_tokens) == (1, 2048)


def test_without_slots_the_metrics_tell_what_runs() -> None:
    reading = read(slots=(501, b'{"error":{"message":"This server does not support slots endpoint."}}'))
    assert (reading.running, reading.waiting, reading.kv_used_tokens) == (4, 2, None)


def test_without_metrics_the_slots_tell_what_runs() -> None:
    reading = read(metrics=(501, b""))
    assert (reading.running, reading.waiting) == (4, None)


def test_without_either_it_is_ready_and_tells_nothing() -> None:
    assert read(metrics=None, slots=None) == Reading(at=5.0)


def test_an_unexpected_page_leaves_it_ready() -> None:
    assert read(slots=(200, b'{"slots":4}')) == Reading(at=5.0)


def test_it_is_not_ready_while_it_loads() -> None:
    loading = (503, b'{"error":{"message":"Loading model","type":"unavailable_error","code":503}}')
    reading = read(health=loading)
    assert not reading.ready
    assert "Loading model" in reading.error


def test_looks_leave_the_engine_a_quiet_second_to_notice_disconnects() -> None:
    assert LlamaServer.look_every_s == LOOK_EVERY_S > 1.0


def test_a_slot_is_one_sequence() -> None:
    async def ask() -> Capacity:
        async with serving(LLAMACPP) as pages:
            return await LlamaServer(pages.address).capacity()

    held = asyncio.run(ask())
    assert held == Capacity(kv_tokens=8192, slot_tokens=2048, sequences=4, context_tokens=2048)
    assert held.slots == held.sequences


def test_a_capacity_that_it_does_not_tell_is_an_error_with_words() -> None:
    async def ask() -> Capacity:
        async with serving(LLAMACPP, props=(200, b"{}")) as pages:
            return await LlamaServer(pages.address).capacity()

    with pytest.raises(EngineError, match="/props answered something unexpected"):
        asyncio.run(ask())


def by_words(body: bytes) -> Page:
    return 200, json.dumps({"tokens": [1] * len(json.loads(body)["content"].split())}).encode()


def test_the_ids_of_a_text_are_those_that_it_reads_a_prompt_with() -> None:
    def told(body: bytes) -> Page:
        assert json.loads(body) == {"content": "a b", "add_special": True, "parse_special": True}
        return 200, b'{"tokens": [7, 8]}'

    async def ask() -> list[int] | None:
        async with serving(LLAMACPP, tokenize=told) as pages:
            return await LlamaServer(pages.address).token_ids("a b")

    assert asyncio.run(ask()) == [7, 8]


async def _count(path: str, body: object, **changed: Answers | None) -> tuple[tuple[int, ...] | None, Pages]:
    async with serving(LLAMACPP, tokenize=by_words, **changed) as pages:
        server = LlamaServer(pages.address)
        content = json.dumps(body).encode()
        first = await server.count_tokens(path, content)
        assert await server.count_tokens(path, content) == first
        return first, pages


@pytest.mark.parametrize(
    ("body", "counts"),
    [
        ({"prompt": "a b c"}, (3,)),
        ({"prompt": ["a", [1, 2, 3, 4], "b c"]}, (1, 4, 2)),
        ({"prompt": None}, None),
    ],
)
def test_completion_prompts_are_counted_by_its_tokenizer(body: object, counts: tuple[int, ...] | None) -> None:
    assert asyncio.run(_count("/v1/completions", body))[0] == counts


def test_a_chat_is_counted_in_one_call() -> None:
    counted = {"v1__chat__completions__input_tokens": (200, b'{"input_tokens":32,"object":"x"}')}
    counts, pages = asyncio.run(_count("/v1/chat/completions", {"messages": []}, **counted))
    assert counts == (32,)
    assert pages.asked == ["/v1/chat/completions/input_tokens"] * 2


def test_an_older_server_templates_first_and_is_asked_only_once_for_the_short_way() -> None:
    templated = (200, b'{"prompt":"<|im_start|> user hello"}')
    counts, pages = asyncio.run(_count("/v1/chat/completions", {"messages": []}, **{"apply-template": templated}))
    assert counts == (3,)
    assert pages.asked == [
        "/v1/chat/completions/input_tokens",
        *("/apply-template", "/tokenize"),
        *("/apply-template", "/tokenize"),
    ]


def test_a_chat_that_the_engine_finds_wrong_is_an_error() -> None:
    refused = {"v1__chat__completions__input_tokens": (400, b"'messages' is required")}
    with pytest.raises(EngineError, match="'messages' is required"):
        asyncio.run(_count("/v1/chat/completions", {}, **refused))


def test_other_paths_are_not_counted() -> None:
    assert asyncio.run(_count("/v1/embeddings", {"input": "x"}))[0] is None
