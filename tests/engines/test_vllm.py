from __future__ import annotations

import asyncio
import json

import pytest

from tests.engines.pages import VLLM, Answers, Page, recorded, serving
from tidegate.engines.vllm.readings import VllmServer, whole_blocks
from tidegate.errors import EngineError
from tidegate.policy.reading import Capacity, Reading

POOL_TOKENS = 363 * 128


def read(**changed: Answers | None) -> Reading:
    async def ask() -> Reading:
        async with serving(VLLM, **changed) as pages:
            return await VllmServer(pages.address).read(5.0)

    return asyncio.run(ask())


def capacity(**changed: Answers | None) -> Capacity:
    async def ask() -> Capacity:
        async with serving(VLLM, **changed) as pages:
            return await VllmServer(pages.address).capacity()

    return asyncio.run(ask())


def page_with(old: bytes, new: bytes) -> Page:
    status, text = recorded("vllm_metrics.txt")
    assert old in text
    return status, text.replace(old, new)


def test_a_reading_carries_what_the_metrics_say() -> None:
    assert read() == Reading(
        at=5.0,
        running=3,
        waiting=2,
        kv_used_tokens=round(0.25 * POOL_TOKENS),
        preemptions=41,
        prefix_asked_tokens=400,
        prefix_found_tokens=128,
        turned_away=14,
    )


def test_the_pool_is_all_blocks_but_the_null_block() -> None:
    assert capacity() == Capacity(kv_tokens=POOL_TOKENS, slot_tokens=256, context_tokens=2048)


def test_series_of_several_engines_add_up() -> None:
    status, text = recorded("vllm_metrics.txt")
    doubled = text + text.replace(b'engine="0"', b'engine="1"').replace(b"perc{engine", b"perc{engine").replace(
        b'model_name="m"} 0.25', b'model_name="m"} 0.75'
    )
    reading = read(metrics=(status, doubled))
    assert (reading.running, reading.waiting, reading.preemptions) == (6, 4, 82)
    assert reading.kv_used_tokens == POOL_TOKENS
    assert capacity(metrics=(status, doubled)).kv_tokens == 2 * POOL_TOKENS


def test_a_sleeping_engine_is_not_ready() -> None:
    reading = read(metrics=page_with(b'sleep_state="awake"} 1.0', b'sleep_state="awake"} 0.0'))
    assert not reading.ready
    assert "asleep" in reading.error


def test_a_dead_engine_core_is_not_ready_though_its_metrics_still_answer() -> None:
    assert not read(health=(503, b"")).ready


@pytest.mark.parametrize("page", [(404, b""), (200, b"vllm:num_requests_running{ 3\n")])
def test_missing_figures_are_none_and_no_fault_of_the_engine(page: Page) -> None:
    assert read(metrics=page) == Reading(at=5.0)


def test_an_unknown_pool_leaves_the_usage_unknown() -> None:
    unknown = page_with(b'num_gpu_blocks="364"', b'num_gpu_blocks="None"')
    assert read(metrics=unknown).kv_used_tokens is None
    assert capacity(metrics=unknown).kv_tokens is None


def test_no_metrics_page_means_no_capacity() -> None:
    with pytest.raises(EngineError, match="/metrics answered 404"):
        capacity(metrics=None)


@pytest.mark.parametrize(("slot", "block", "whole"), [(256, 16, 256), (256, 128, 256), (256, 96, 192), (256, 544, 544)])
def test_a_slot_is_whole_blocks(slot: int, block: int, whole: int) -> None:
    assert whole_blocks(slot, block) == whole


def tokenize(body: bytes) -> Page:
    asked = json.loads(body)
    if "messages" in asked:
        return 200, json.dumps({"count": 30 + len(asked), "max_model_len": 2048, "tokens": [1]}).encode()
    return 200, json.dumps({"count": len(asked["prompt"].split()), "max_model_len": 2048, "tokens": []}).encode()


@pytest.mark.parametrize(
    ("path", "body", "counts"),
    [
        ("/v1/completions", {"prompt": "a b c", "max_tokens": 5}, (3,)),
        ("/v1/completions", {"prompt": ["a", "b c"]}, (1, 2)),
        ("/v1/completions", {"prompt": [5, 6, 7]}, (3,)),
        ("/v1/completions", {"prompt": [[5, 6], "x y"]}, (2, 2)),
        ("/v1/completions", {"prompt": {}}, None),
        ("/v1/completions", {"prompt": []}, None),
        ("/v1/completions", {"prompt": [{}]}, None),
        ("/v1/completions", {"prompt": ["x"] * 65}, None),
        ("/v1/chat/completions", {"model": "m", "messages": [], "tools": [], "temperature": 0}, (32,)),
        ("/v1/chat/completions", {"messages": "x"}, None),
        ("/v1/embeddings", {"input": "x"}, None),
    ],
)
def test_tokens_are_counted_for_each_prompt(path: str, body: object, counts: tuple[int, ...] | None) -> None:
    async def ask() -> tuple[int, ...] | None:
        async with serving(VLLM, tokenize=tokenize) as pages:
            return await VllmServer(pages.address).count_tokens(path, json.dumps(body).encode())

    assert asyncio.run(ask()) == counts


def test_the_ids_of_a_text_are_those_of_its_tokenizer() -> None:
    def told(body: bytes) -> Page:
        assert json.loads(body) == {"prompt": "a b"}
        return 200, b'{"count": 2, "max_model_len": 2048, "tokens": [7, 8]}'

    async def ask() -> list[int] | None:
        async with serving(VLLM, tokenize=told) as pages:
            return await VllmServer(pages.address).token_ids("a b")

    assert asyncio.run(ask()) == [7, 8]


@pytest.mark.parametrize("path", ["/v1/completions", "/v1/chat/completions"])
def test_a_body_that_is_no_json_is_not_counted(path: str) -> None:
    async def ask() -> tuple[int, ...] | None:
        async with serving(VLLM) as pages:
            return await VllmServer(pages.address).count_tokens(path, b"{")

    assert asyncio.run(ask()) is None


def test_a_request_that_the_tokenizer_refuses_is_an_error() -> None:
    async def ask() -> tuple[int, ...] | None:
        async with serving(VLLM, tokenize=(400, b"bad role")) as pages:
            return await VllmServer(pages.address).count_tokens("/v1/chat/completions", b'{"messages":[1]}')

    with pytest.raises(EngineError, match="bad role"):
        asyncio.run(ask())
