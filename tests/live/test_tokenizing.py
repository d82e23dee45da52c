"""The demo model's own tokenizer beside the real engine: the same ids, the same answers, the same counts."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.live import running
from tests.live.running import CHAT, MODEL, Engine, Service, call, said, until
from tests.live.smollm_tokenizer import write_tokenizer
from tidegate.engines.recognition import recognise
from tidegate.gateway.exactness import CHAT_PROBE, PROBES
from tidegate.gateway.piece_cache import PieceCache
from tidegate.gateway.tokenizer import Tokenizer

pytestmark = pytest.mark.live

COMPLETIONS = "/v1/completions"
# More than 1 024 tokens by its bytes, and few in truth, so that its prefill is short.
SPACED = "Count: " + " " * 4000 + "one two three. Füße 漢字 🦆 12345.\n" * 3


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tokenizer(tmp_path_factory.mktemp("tokenizer"))


@pytest.fixture(scope="module")
def fronted(engine: Engine, folder: Path) -> Iterator[Service]:
    """The service before the engine, with the tokenizer's file."""
    replica = {"url": engine.url, "api_key_env": "ENGINE_KEY"}
    upstream = {"replicas": [replica], "tokenizer": str(folder), "forward_token_ids": True}
    config = folder / "tidegate.json"
    config.write_text(json.dumps({"upstreams": {MODEL: upstream}}))
    env = {"ENGINE_KEY": engine.options.api_key}
    with running.service(folder / "serve.log", "--config", str(config), env=env) as started:
        until(lambda: "token ids are those of the engine" in started.log.read_text(), 20)
        yield started


def row_of(fronted: Service, request_id: str) -> dict[str, Any]:
    """Rows travel to the parent in batches."""
    path = f"/admin/requests/{request_id}"
    until(lambda: call(fronted.admin, path).status == 200, 10)
    (found,) = call(fronted.admin, path).json["requests"]
    row: dict[str, Any] = found
    return row


def test_every_probe_and_a_long_text_have_the_engines_ids(engine: Engine, folder: Path) -> None:
    ours, theirs = Tokenizer(str(folder), PieceCache()), asyncio.run(recognise(engine.options.address))
    for text in (*PROBES, SPACED, Path(__file__).read_text()):
        assert ours.ids(text) == asyncio.run(theirs.token_ids(text)), text
        body = json.dumps({"prompt": text}).encode()
        assert json.loads(ours.count(COMPLETIONS, body, wants_ids=True).prompt_ids or b"") == ours.ids(text)
    assert ours.count(CHAT, CHAT_PROBE, wants_ids=False).tokens == asyncio.run(theirs.count_tokens(CHAT, CHAT_PROBE))


def test_a_conversion_that_is_wrong_in_one_detail_is_found_out(engine: Engine, tmp_path: Path) -> None:
    ours = Tokenizer(str(write_tokenizer(tmp_path, digits_apart=False)), PieceCache())
    theirs = asyncio.run(recognise(engine.options.address))
    assert any(ours.ids(text) != asyncio.run(theirs.token_ids(text)) for text in PROBES)


def test_ids_in_the_place_of_a_text_get_the_same_answer_from_the_same_kv(engine: Engine, folder: Path) -> None:
    ids = Tokenizer(str(folder), PieceCache()).ids(SPACED)
    body = {"max_tokens": 8, "temperature": 0}
    text, same = (call(engine.url, COMPLETIONS, {**body, "prompt": each}, engine.key).json for each in (SPACED, ids))
    assert same["choices"][0]["text"] == text["choices"][0]["text"]
    assert same["usage"]["prompt_tokens"] == text["usage"]["prompt_tokens"] == len(ids)
    assert same["usage"]["prompt_tokens_details"]["cached_tokens"] == len(ids) - 1


def test_through_the_service_the_count_is_that_of_the_engine(engine: Engine, fronted: Service) -> None:
    body = {"model": MODEL, "prompt": SPACED, "max_tokens": 8, "temperature": 0}
    direct = call(engine.url, COMPLETIONS, body, engine.key).json
    answer = call(fronted.url, COMPLETIONS, body, {"x-request-id": "ids"})
    assert answer.json["choices"][0]["text"] == direct["choices"][0]["text"]
    row = row_of(fronted, "ids")
    assert (row["counted_by"], row["is_prompt_told"]) == ("tokenizer", True)
    assert row["counted_tokens"] == row["prompt_tokens"] == direct["usage"]["prompt_tokens"]
    assert row["estimated_tokens"] > 1024
    assert "by the upstream's tokenizer file" in row["explanation"][1]


def test_a_chat_near_the_border_of_its_class_is_counted_as_the_engine_counts_it(fronted: Service) -> None:
    answer = call(fronted.url, CHAT, said(SPACED, max_tokens=2), {"x-request-id": "chat"})
    assert answer.status == 200
    row = row_of(fronted, "chat")
    assert (row["counted_by"], row["counted_tokens"]) == ("tokenizer", row["prompt_tokens"])
    assert row["service_class"] == "interactive"
    assert "error" not in fronted.log.read_text()
