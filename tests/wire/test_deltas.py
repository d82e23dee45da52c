"""Text out of chunks, whatever their form."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tidegate.errors import ProtocolError
from tidegate.wire.deltas import Part, parts_of, whole_part


def event(*choices: dict[str, Any], **more: Any) -> bytes:
    return b"data: " + json.dumps({"choices": list(choices), **more}).encode() + b"\n\n"


def delta(text: str | None, **more: Any) -> dict[str, Any]:
    return {"index": 0, "delta": {"content": text, **more}, "finish_reason": None}


def contents(parts: list[Part]) -> list[str | None]:
    found = [choice for part in parts for choice in part.choices or ()]
    return [choice.text if choice.delta is None else choice.delta.content for choice in found]


def test_all_events_are_taken_in_order() -> None:
    events = event(delta("a")) + event(delta("b\n\ndata: c")) + event(usage={"prompt_tokens": 3})
    assert contents(parts_of(events)) == ["a", "b\n\ndata: c"]
    assert contents(parts_of(events + b"data: [DONE]\n\n")) == ["a", "b\n\ndata: c"]


@pytest.mark.parametrize(
    "events",
    [
        b": ping\n\n" + event(delta("a")) + b": ping\n\n" + event(delta("b")),
        event(delta("a")).replace(b"data: ", b"data:") + event(delta("b")),
        (event(delta("a")) + event(delta("b")) + b"data: [DONE]\n\n").replace(b"\n", b"\r\n"),
        b"event: message\n" + event(delta("a")) + b"id: 5\n" + event(delta("b")),
        event(delta("a")).replace(b', "finish', b',\ndata: "finish') + event(delta("b")),
        event(delta("a")) + b'data: ["of another shape"]\n\n' + event(delta("b")),
        event(delta("a")) + b'data: {"choices": 5}\n\n' + event(delta("b")),
    ],
)
def test_unusual_forms_say_the_same(events: bytes) -> None:
    assert contents(parts_of(events)) == ["a", "b"]


@pytest.mark.parametrize("events", [b"", b": ping\n\n", b"data: [DONE]\n\n", b"retry: 3\n\n"])
def test_what_has_no_chunk_has_no_parts(events: bytes) -> None:
    assert parts_of(events) == []


@pytest.mark.parametrize(
    "bad", [b'{"choices": [', b'{"choices": [{"text": "\xff\xfe"}]}', b"<html>", b'{"a":' + b"[" * 100_000]
)
def test_what_is_no_json_in_utf8_is_told(bad: bytes) -> None:
    with pytest.raises(ProtocolError):
        parts_of(event(delta("a")) + b"data: " + bad + b"\n\n")
    with pytest.raises(ProtocolError):
        whole_part(bad)


@pytest.mark.parametrize(
    ("more", "has_other"),
    [
        ({}, False),
        ({"tool_calls": None}, False),
        ({"tool_calls": []}, False),
        ({"tool_calls": [{"index": 0}]}, True),
        ({"function_call": {"name": "f"}}, True),
        ({"refusal": "no"}, True),
        ({"refusal": ""}, False),
    ],
)
def test_tool_calls_and_refusals_are_seen(more: dict[str, Any], has_other: bool) -> None:
    (part,) = parts_of(event(delta(None, **more)))
    assert part.choices is not None
    said = part.choices[0].delta
    assert said is not None
    assert said.has_other is has_other


def test_a_whole_answer() -> None:
    part = whole_part(b'{"choices": [{"index": 1, "message": {"content": "hi"}, "finish_reason": "stop"}]}')
    assert part is not None
    assert part.choices is not None
    (choice,) = part.choices
    assert choice.message is not None
    assert (choice.index, choice.message.content, choice.finish_reason) == (1, "hi", "stop")
    assert whole_part(b'{"choices": 3}') is None
    error = whole_part(b'{"error": {"message": "x"}}')
    assert error is not None
    assert error.choices is None
