"""A real vLLM whose connection is cut in the middle of a stream, and that goes on with it by token ids, as if it were
another one. The answers are those of undisturbed streams, and no client sees an id."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import pytest

from bench.vllm_runs import place
from tests.live.cutter import Cutter
from tests.live.running import CHAT, Exchange, Service, service, until
from tests.live.vllm_serving import asked, vllm
from tidegate.wire.chunks import data_of, events_in

pytestmark = [pytest.mark.live, pytest.mark.skipif(not place.is_there(), reason=place.MISSING)]

TOKENS = 40
CUT_AFTER = 9
COMPLETIONS = "/v1/completions"
QUESTIONS = ("Why is the sky blue?", "List three fruits.", "What is 日本 in English?", "Write a short poem.")


@dataclass
class Cut:
    service: Service
    cutter: Cutter


@pytest.fixture(scope="module")
def cut(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cut]:
    folder = tmp_path_factory.mktemp("vllm")
    with ExitStack() as stack:
        cutter = Cutter(stack.enter_context(vllm(folder, "--dtype", "float32")).url)
        stack.callback(cutter.close)
        config = folder / "tidegate.yaml"
        replicas = [{"url": url} for url in cutter.urls]
        patient = {"floor_s": 170, "default_s": 170, "ceiling_s": 170}
        settings = {
            "upstreams": {"m": {"replicas": replicas, "continuation": "exact"}},
            "tail": {"timeouts": {"first_byte": patient}},
        }
        config.write_text(json.dumps(settings))
        yield Cut(stack.enter_context(service(folder / "serve.log", "--config", str(config))), cutter)


def answer(cut: Cut, body: dict[str, Any], path: str, after_events: int | None) -> bytes:
    cut.cutter.after_events = after_events
    length = {"max_tokens": TOKENS, "ignore_eos": True}
    exchange = Exchange(
        cut.service.url, {**body, **length, "stream": True, "stream_options": {"include_usage": True}}, path=path
    )
    with exchange.socket:
        raw = exchange.read_all()
    assert b" 200 " in raw[:32], raw
    assert b"token_ids" not in raw
    assert raw.count(b"data: [DONE]") == 1, raw[-500:]
    assert (b": tidegate continued on m-" in raw) == (after_events is not None), raw
    return raw


def said_in(raw: bytes) -> tuple[str, list[str], set[str], dict[str, int]]:
    """The text, why it ended, all ids, and the usage."""
    rest, body = raw.partition(b"\r\n\r\n")[2], b""
    while rest:
        size, _, rest = rest.partition(b"\r\n")
        body, rest = body + rest[: int(size, 16)], rest[int(size, 16) + 2 :]
    found = [data_of(event) for event in events_in(body)]
    chunks = [json.loads(each) for each in found if each and each != b"[DONE]"]
    choices = [choice for chunk in chunks for choice in chunk["choices"]]
    texts = [choice["delta"].get("content") if "delta" in choice else choice["text"] for choice in choices]
    assert sum("role" in choice.get("delta", ()) for choice in choices) == int("delta" in choices[0])
    ends = [choice["finish_reason"] for choice in choices if choice.get("finish_reason")]
    (usage,) = [chunk["usage"] for chunk in chunks if chunk.get("usage")]
    counts = {name: usage[name] for name in ("prompt_tokens", "completion_tokens", "total_tokens")}
    return "".join(text or "" for text in texts), ends, {chunk["id"] for chunk in chunks}, counts


@pytest.mark.parametrize("path", [CHAT, COMPLETIONS])
def test_a_cut_stream_goes_on_by_its_token_ids(cut: Cut, path: str) -> None:
    equal = 0
    for question in QUESTIONS:
        body = asked(question) if path == CHAT else {"model": "m", "prompt": question, "temperature": 0}
        text, ends, ids, usage = said_in(answer(cut, body, path, None))
        again, ends_again, ids_again, usage_again = said_in(answer(cut, body, path, CUT_AFTER))
        assert (len(ids), len(ids_again)) == (1, 1)
        assert usage_again["prompt_tokens"] == usage["prompt_tokens"]
        assert text[:5] == again[:5]
        equal += (text, ends, usage) == (again, ends_again, usage_again)
    print(f"\n{path}: {equal} of {len(QUESTIONS)} answers as without a cut")  # noqa: T201 - what one runs this for
    # A prefill rounds otherwise than the steps that it stands for; in the model's own bfloat16 that turned 2 answers
    # of 5, some ten tokens after their seams.
    assert equal >= len(QUESTIONS) - 1
    until(lambda: not cut.service.view()["open_requests"], 30)
    assert cut.service.view()["permits"] == 0
