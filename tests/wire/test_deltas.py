"""Text out of chunks, whatever their form."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tidegate.errors import ProtocolError
from tidegate.wire.deltas import Deltas, Part, parts_of, whole_part


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


def read_all(pieces: list[bytes]) -> tuple[str, int]:
    """The text of all, and how many pieces were read by what was learned."""
    deltas, text, quick = Deltas(), "", 0
    for piece in pieces:
        found = deltas.read(piece)
        if isinstance(found, str):
            text, quick = text + found, quick + 1
        else:
            text += "".join(each or "" for each in contents(found))
    return text, quick


def test_a_stream_of_like_events_is_read_by_what_stands_between_the_texts() -> None:
    texts = ["", "a", '"quoted"', "back\\slash\n", "é 😀", "data: x\n\ndata: ", "end"] * 4
    events = [event(delta(text)) for text in texts]
    pieces = [b"".join(events[at : at + 5]) for at in range(0, len(events), 5)]
    assert read_all(pieces) == ("".join(texts), len(pieces) - 1)
    assert read_all([b"".join(events)]) == ("".join(texts), 0)
    whole = [event({"index": 0, "text": text}) for text in texts]
    assert read_all(whole)[0] == "".join(texts)
    assert read_all(whole)[1] > len(texts) // 2


@pytest.mark.parametrize(
    "odd",
    [
        event({"index": 1, "delta": {"content": "b"}}),
        event({"index": 0, "delta": {"content": "b"}, "finish_reason": "stop"}),
        event(delta("b", tool_calls=[{"index": 0}])),
        event(delta("b"), created=2),
        event(delta("b")).replace(b"data: ", b"data:"),
        b": ping\n\n" + event(delta("b")),
        event(delta("b"), delta("")),
        event(delta("b")).replace(b"\n\n", b"\r\n\r\n"),
        event({"index": 0, "delta": {"content": "b"}, "text": "b"}),
        event(delta("b")) + b"data: [DONE]\n\n",
        event(delta("b")).replace(b'"b"', b'"\\u0062"'),
    ],
)
def test_events_of_another_form_are_read_one_by_one(odd: bytes) -> None:
    usual = event(delta("a"))
    assert read_all([usual, usual + odd, usual, usual])[0] == "aabaa"
    assert read_all([usual, odd, odd, usual, usual])[0] == "abbaa"
    found = Deltas().read(odd)
    assert isinstance(found, list)


def test_events_without_text_teach_nothing() -> None:
    deltas = Deltas()
    for piece in (event(delta("a")), b": ping\n\n", event(), event(delta(None))):
        assert isinstance(deltas.read(piece), list)
    for bad in (b"data: {\n\n", b'data: {"choices": [{"delta": {"content": "\xff"}}]}\n\n'):
        deltas.read(event(delta("a")))
        with pytest.raises(ProtocolError):
            deltas.read(event(delta("a")) + bad)


def test_a_text_that_seems_to_hold_a_quote_is_an_event_of_another_form() -> None:
    usual = event(delta("a"))
    odd = usual.replace(b'"content": "a"', b'"content": "b", "x": "c"')
    assert read_all([usual, usual + odd, usual])[0] == "aaba"
