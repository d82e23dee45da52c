"""A real vLLM with real weights behind Tidegate: what it tells, and what clients see when it is full or misused."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from bench.vllm_runs import place, server
from bench.vllm_runs.loads import draw
from tests.live.running import CHAT, Answer, Exchange, call, until
from tests.live.vllm_serving import MOST_QUEUED, Protected, asked, figures, post, protected, story
from tidegate.engines.address import Address
from tidegate.engines.recognition import recognise
from tidegate.gateway.exactness import CHAT_PROBE, PROBES
from tidegate.gateway.piece_cache import PieceCache
from tidegate.gateway.tokenizer import Tokenizer

pytestmark = [pytest.mark.live, pytest.mark.skipif(not place.is_there(), reason=place.MISSING)]

POOL_TOKENS = 80 * 32


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Protected]:
    with protected(tmp_path_factory.mktemp("vllm")) as started:
        yield started


def is_idle(both: Protected) -> bool:
    counts = both.engine.metrics()
    return counts["vllm:num_requests_running"] + counts["vllm:num_requests_waiting"] == 0 and both.service.is_idle()


def test_it_is_recognised_with_its_pool(both: Protected) -> None:
    found = asyncio.run(recognise(Address(url=both.engine.url)))
    assert found.kind == "vllm"
    capacity = asyncio.run(found.capacity())
    assert (capacity.kv_tokens, capacity.context_tokens) == (POOL_TOKENS, 1024)
    assert both.service.replica()["slots"]["total"] == POOL_TOKENS // capacity.slot_tokens


def test_the_ledgers_figures_stand_in_vllms_own_metrics(both: Protected) -> None:
    assert post(both.engine.url, story(0, 8)).status == 200
    until(lambda: figures(both.engine).get("tidegate_kv_reserved_blocks") == 0, 10)
    found = figures(both.engine)
    assert found["tidegate_kv_pool_blocks"] == 80
    assert found["tidegate_kv_peak_reserved_blocks"] >= 1
    assert found["tidegate_kv_leaked"] == 0
    assert found["tidegate_kv_preemptions_total"] == both.engine.metrics()["vllm:num_preemptions_total"] == 0


def test_the_tokenizer_file_beside_its_weights_makes_its_ids_and_ids_get_the_texts_answer(both: Protected) -> None:
    ours, theirs = Tokenizer(str(place.model()), PieceCache()), asyncio.run(recognise(Address(url=both.engine.url)))
    for text in PROBES:
        assert ours.ids(text) == asyncio.run(theirs.token_ids(text)), text
    counted = ours.count(CHAT, CHAT_PROBE, wants_ids=False).tokens
    assert counted == asyncio.run(theirs.count_tokens(CHAT, CHAT_PROBE))
    text = "One two three. " * 40
    body = {"model": "m", "max_tokens": 8, "temperature": 0}
    headers = {"content-type": "application/json"}
    answers = [
        call(both.engine.url, "/v1/completions", {**body, "prompt": prompt}, headers).json
        for prompt in (text, ours.ids(text))
    ]
    assert answers[0]["choices"][0]["text"] == answers[1]["choices"][0]["text"]
    assert answers[0]["usage"] == answers[1]["usage"]


def test_an_over_long_prompt_is_the_clients_fault_before_and_in_the_engine(both: Protected) -> None:
    body = asked("word " * 3000, max_tokens=8, stream=True)
    direct = post(both.engine.url, body)
    assert direct.status == 400
    assert "maximum context length is 1024 tokens" in direct.json["error"]["message"]
    refused = post(both.service.url, body)
    assert refused.status == 400
    assert "retry-after" not in refused.headers


def test_a_full_engine_pushes_back_and_is_not_taken_for_a_broken_one(both: Protected) -> None:
    with ThreadPoolExecutor(MOST_QUEUED * 2) as pool:
        # Past the gateway, as another client of the same engine would.
        begun = [pool.submit(post, both.engine.url, story(index, 200)) for index in range(MOST_QUEUED * 2)]
        full: Answer = next(answer for one in begun if (answer := one.result()).status != 200)
    assert full.status == 503
    assert "The engine is currently busy and cannot accept new requests" in full.json["error"]["message"]
    assert "retry-after" not in full.headers
    assert sum(one.result().status == 200 for one in begun) >= MOST_QUEUED
    until(lambda: is_idle(both), 60)


def test_behind_the_gateway_a_full_engine_is_an_answer_with_a_time_to_come_back(both: Protected) -> None:
    with ThreadPoolExecutor(MOST_QUEUED) as pool:
        others = [pool.submit(post, both.engine.url, story(index, 150)) for index in range(MOST_QUEUED)]
        until(lambda: both.engine.metrics()["vllm:num_requests_running"] >= 1, 30)
        mine = post(both.service.url, story(99, 4), x_tidegate_deadline_ms="3000")
        assert {one.result().status for one in others} == {200}
    # It waited for foreign load to end, or was told when to come again; it never was an error of the engine's.
    assert mine.status in (200, 429, 503)
    assert mine.status == 200 or "retry-after" in mine.headers
    assert both.service.replica()["breaker"] == "closed"
    until(lambda: is_idle(both), 60)


def test_who_leaves_frees_the_engine_and_the_permit(both: Protected) -> None:
    exchanges = [Exchange(both.service.url, story(index, 600, stream=True)) for index in range(3)]
    for exchange in exchanges:
        exchange.read_events(3)
    for exchange in exchanges:
        exchange.leave()
    until(lambda: is_idle(both), 20)
    until(lambda: figures(both.engine)["tidegate_kv_held_blocks"] == 0, 10)
    assert figures(both.engine)["tidegate_kv_leaked"] == 0


def test_under_a_load_that_fills_the_pool_nobody_is_preempted(both: Protected) -> None:
    found = asyncio.run(server.load(both.engine.port, draw("exact", 24, 81), clients=MOST_QUEUED, seed=81))
    assert found["requests"] == 24
    until(lambda: is_idle(both), 30)
    assert both.engine.metrics()["vllm:num_preemptions_total"] == 0
    assert figures(both.engine)["tidegate_kv_leaked"] == 0
