"""What a client has seen of a stream: exact wherever its reads are split, and bounded."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.gateway import transcript as module
from tidegate.gateway.transcript import MOST_TEXT_BYTES, Transcript


def event(**choice: Any) -> bytes:
    return (
        b"data: " + json.dumps({"id": "c-1", "created": 9, "model": "m", "choices": [{"index": 0, **choice}]}).encode()
    ) + b"\n\n"


def said(text: str, **fields: Any) -> bytes:
    return event(delta={"content": text}, **fields)


def read(*events: bytes) -> Transcript:
    transcript = Transcript()
    for each in events:
        transcript.take(each)
    transcript.read()
    return transcript


def test_the_text_of_a_chat_and_what_its_chunks_have_in_common() -> None:
    seen = read(event(delta={"role": "assistant", "content": None}), b": ping\n\n", said("one"), said(" two"))
    assert (seen.text, seen.tokens, seen.has_role, seen.is_finished) == ("one two", 2, True, False)
    assert (seen.id, seen.created, seen.model, seen.problem) == ("c-1", 9, "m", "")
    assert read(event(text="a"), event(text="b", finish_reason="stop"), b"data: [DONE]\n\n").is_finished


@given(st.lists(st.text(max_size=5), max_size=30), st.data())
def test_it_does_not_matter_when_it_is_read(texts: list[str], data: st.DataObject) -> None:
    transcript = Transcript()
    for text in texts:
        transcript.take(said(text))
        if data.draw(st.booleans()):
            transcript.read()
    transcript.read()
    assert (transcript.text, transcript.tokens) == ("".join(texts), sum(map(bool, texts)))


def test_ids_stand_for_the_text_that_was_seen() -> None:
    """The ids of tokens without text yet are those of half a character: the next replica writes it again."""
    seen = read(
        event(delta={"role": "assistant", "content": ""}, prompt_token_ids=[1, 2]),
        said("a", token_ids=[11]),
        said("", token_ids=[12]),
        said("字", token_ids=[13]),
        said("", token_ids=[14]),
    )
    assert (list(seen.prompt_ids or ()), list(seen.token_ids), seen.tokens) == ([1, 2], [11, 12, 13], 3)
    seen.forget_unseen()
    seen.take(said("b", token_ids=[15], prompt_token_ids=[1, 2, 11, 12, 13]))
    seen.read()
    assert (list(seen.prompt_ids or ()), list(seen.token_ids)) == ([1, 2], [11, 12, 13, 15])


@pytest.mark.parametrize(
    ("events", "problem"),
    [
        ([b"data: {nonsense\n\n"], "no chunk"),
        ([event(delta={"tool_calls": [{"index": 0}]})], "tool"),
        ([said("a"), event(delta={"reasoning_content": "hm"})], "reasoning"),
        ([b'data: {"choices":[{"index":1,"text":"x"}]}\n\n'], "several"),
    ],
)
def test_what_cannot_be_continued_is_said_and_nothing_of_it_kept(events: list[bytes], problem: str) -> None:
    seen = read(*events)
    assert problem in seen.problem
    assert seen.text == ""
    seen.take(said("more"))
    seen.read()
    assert seen.text == ""


def test_long_answers_are_kept_as_text_and_longer_ones_not_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_RAW_BYTES", 1000)
    transcript, word = Transcript(), "word " * 20
    for _ in range(MOST_TEXT_BYTES // len(word)):
        transcript.take(said(word))
        assert transcript._raw_bytes <= 1000
    assert transcript.problem == ""
    for _ in range(20):
        transcript.take(said(word))
    assert "64 KiB" in transcript.problem
    assert transcript.text == ""
