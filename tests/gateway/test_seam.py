"""A second stream joined to the first: one id, one role, one usage."""

from __future__ import annotations

import json
from typing import Any

from tests.gateway.test_transcript import event, said
from tidegate.gateway.seam import Seam
from tidegate.gateway.transcript import Transcript
from tidegate.wire.chunks import DONE, data_of, events_in

LABEL = b": tidegate continued on r2\n\n"


def first(*events: bytes) -> Transcript:
    transcript = Transcript()
    for each in events or (event(delta={"role": "assistant", "content": ""}), said("one"), said(" two")):
        transcript.take(each)
    transcript.read()
    return transcript


def chunks(events: bytes) -> list[dict[str, Any]]:
    found = (data_of(each) for each in events_in(events))
    return [json.loads(each) for each in found if each is not None and each != DONE]


def second(choice: dict[str, Any] | None = None, **fields: Any) -> bytes:
    choices = [] if choice is None else [{"index": 0, **choice}]
    chunk = {"id": "c-2", "created": 10, "model": "other", "object": "x", "choices": choices, **fields}
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"


def test_the_second_stream_looks_like_the_first() -> None:
    seam = Seam(first(), LABEL, is_chat=True)
    role = second({"delta": {"role": "assistant", "content": None}, "finish_reason": None})
    joined = seam.joined(role + second({"delta": {"content": " three"}, "finish_reason": None}))
    assert joined.startswith(LABEL)
    (chunk,) = chunks(joined)
    assert (chunk["id"], chunk["created"], chunk["model"]) == ("c-1", 9, "m")
    assert chunk["choices"] == [{"index": 0, "delta": {"content": " three"}, "finish_reason": None}]
    both = seam.joined(second({"delta": {"role": "assistant", "content": " four"}, "finish_reason": "stop"}))
    assert chunks(both)[0]["choices"][0] == {"index": 0, "delta": {"content": " four"}, "finish_reason": "stop"}
    assert LABEL not in both
    assert seam.joined(b": ping\n\ndata: [DONE]\n\n") == b": ping\n\ndata: [DONE]\n\n"


def test_a_role_that_has_not_been_seen_is_passed_on() -> None:
    seam = Seam(first(b": ping\n\n"), LABEL, is_chat=True)
    (chunk,) = chunks(seam.joined(second({"delta": {"role": "assistant", "content": ""}})))
    assert chunk["choices"][0]["delta"]["role"] == "assistant"
    assert (chunk["id"], chunk["created"]) == ("c-2", 10)


def test_the_usage_counts_the_prompt_once() -> None:
    seam = Seam(first(), LABEL, is_chat=True)
    usage = {"prompt_tokens": 12, "completion_tokens": 5, "total_tokens": 17}
    details = {"prompt_tokens_details": {"cached_tokens": 11}}
    (chunk,) = chunks(seam.joined(second(None, usage={**usage, **details}, timings={"prompt_n": 1})))
    assert chunk["usage"] == {
        "prompt_tokens": 10,
        "completion_tokens": 7,
        "total_tokens": 17,
        "prompt_tokens_details": {"cached_tokens": 10},
    }
    assert "timings" not in chunk
    assert chunk["choices"] == []
    assert seam.counted(None, None) == (None, None)
    assert seam.counted(1, 3) == (0, 5)


def test_a_completion_goes_on_as_a_chat_and_tells_no_ids() -> None:
    seam = Seam(first(), LABEL, is_chat=True)
    events = second({"text": " three", "token_ids": [3], "prompt_token_ids": [1, 2]}, object="text_completion")
    events += second({"text": "", "token_ids": [4]}) + second({"text": "", "finish_reason": "length"})
    word, end = chunks(seam.joined(events))
    assert word["object"] == "chat.completion.chunk"
    assert word["choices"] == [{"index": 0, "delta": {"content": " three"}}]
    assert end["choices"] == [{"index": 0, "finish_reason": "length", "delta": {}}]


def test_a_completion_stays_one() -> None:
    seam = Seam(first(event(text="one")), LABEL, is_chat=False)
    (chunk,) = chunks(seam.joined(second({"text": " two", "finish_reason": None}, object="text_completion")))
    assert chunk["object"] == "text_completion"
    assert chunk["choices"] == [{"index": 0, "text": " two", "finish_reason": None}]


def test_what_is_no_chunk_passes_as_it_is() -> None:
    seam = Seam(first(), b"", is_chat=True)
    odd = b'data: nonsense\n\ndata: {"choices":3}\n\n'
    assert seam.joined(odd).startswith(b"data: nonsense\n\n")
    assert chunks(seam.joined(second(None, choices=["x"]) + second(None, usage=None))) == [
        {"id": "c-1", "created": 9, "model": "m", "object": "chat.completion.chunk", "choices": ["x"]},
        {"id": "c-1", "created": 9, "model": "m", "object": "chat.completion.chunk", "choices": [], "usage": None},
    ]
