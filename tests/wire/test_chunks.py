"""Chunks of a streamed answer: read, and taken out of their events."""

from __future__ import annotations

import msgspec
import pytest

from tidegate.wire.chunks import Delta, chunk_of, data_of, events_in, without_token_ids


def test_events_are_told_apart_however_their_lines_end() -> None:
    text = b'data: {"a":1}\n\n: ping\n\ndata: {"b":2}\r\n\r\ndata: [DONE]\n\n'
    assert list(events_in(text)) == [b'data: {"a":1}', b": ping", b'data: {"b":2}', b"data: [DONE]"]


@pytest.mark.parametrize(
    ("event", "data"),
    [
        (b"data: x", b"x"),
        (b"data:x", b"x"),
        (b": a comment", None),
        (b"event: error\ndata: x", b"x"),
        (b"data: a\r\ndata: b", b"a\nb"),
        (b"event: ping", None),
    ],
)
def test_what_an_event_carries(event: bytes, data: bytes | None) -> None:
    assert data_of(event) == data


def test_a_chunk_of_a_chat_and_one_of_a_completion() -> None:
    chat = chunk_of(b'{"id":"c","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"hi"},"more":[]}]}')
    assert (chat.id, chat.created, chat.model, chat.choices[0].delta) == ("c", 1, "m", Delta(content="hi"))
    plain = chunk_of(b'{"choices":[{"text":"hi","finish_reason":"stop","token_ids":[7]}]}').choices[0]
    assert (plain.text, plain.finish_reason, plain.token_ids) == ("hi", "stop", [7])
    role = chunk_of(b'{"choices":[{"delta":{"role":"assistant","content":null}}]}').choices[0]
    assert role.delta == Delta(role="assistant")


@pytest.mark.parametrize(
    ("delta", "more"),
    [
        ({"content": "x"}, False),
        ({"tool_calls": []}, False),
        ({"tool_calls": [{"index": 0}]}, True),
        ({"reasoning_content": "hm"}, True),
        ({"reasoning": "hm"}, True),
        ({"refusal": "no"}, True),
        ({"function_call": {"name": "f"}}, True),
    ],
)
def test_more_than_text_is_seen(delta: dict[str, object], more: bool) -> None:
    found = chunk_of(msgspec.json.encode({"choices": [{"delta": delta}]})).choices[0].delta
    assert found is not None
    assert found.has_more_than_text is more


def test_what_is_no_chunk_is_said() -> None:
    with pytest.raises(msgspec.DecodeError):
        chunk_of(b'{"choices": 3}')


@pytest.mark.parametrize(
    ("event", "left"),
    [
        (b'{"a":1,"token_ids":[1,2],"b":2}', b'{"a":1,"b":2}'),
        (b'{"a":1,"prompt_token_ids":[1, 2]}', b'{"a":1}'),
        (b'{"token_ids":null,"b":2}', b'{"b":2}'),
        (b'{"text":"\\"token_ids\\":[1]","token_ids":[]}', b'{"text":"\\"token_ids\\":[1]"}'),
        (b'{"a":1}', b'{"a":1}'),
    ],
)
def test_token_ids_are_taken_out_and_no_text_that_looks_like_them(event: bytes, left: bytes) -> None:
    assert without_token_ids(event) == left
