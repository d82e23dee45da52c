"""A stream of chunks becomes the answer that would have come whole."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.wire.assembly import Assembly

USAGE = {"completion_tokens": 2, "prompt_tokens": 33, "prompt_tokens_details": {"cached_tokens": 32}}


def event(**fields: Any) -> bytes:
    return b"data: " + json.dumps({"id": "c-1", "created": 7, **fields}).encode() + b"\n\n"


def delta(index: int = 0, finish_reason: str | None = None, **fields: Any) -> bytes:
    choice = {"finish_reason": finish_reason, "index": index, "delta": fields}
    return event(object="chat.completion.chunk", choices=[choice])


CHAT = [
    delta(role="assistant", content=None),
    delta(content="Hé"),
    b": still here\n\n",
    delta(content="llo\n\ndata: [DONE]\n\n"),
    delta(finish_reason="stop"),
    event(object="chat.completion.chunk", choices=[], usage=USAGE, timings={"predicted_n": 2}),
    b"data: [DONE]\n\n",
]


def assembled(pieces: list[bytes]) -> Assembly:
    assembly = Assembly()
    for piece in pieces:
        assembly.feed(piece)
    return assembly


def test_the_text_is_joined_and_of_everything_else_the_last_word_stands() -> None:
    assembly = assembled(CHAT)
    assert assembly.is_done
    assert json.loads(assembly.body()) == {
        "choices": [
            {
                "finish_reason": "stop",
                "index": 0,
                "message": {"role": "assistant", "content": "Héllo\n\ndata: [DONE]\n\n"},
            }
        ],
        "id": "c-1",
        "created": 7,
        "object": "chat.completion",
        "usage": USAGE,
        "timings": {"predicted_n": 2},
    }


@given(st.lists(st.integers(0, 1000)))
def test_it_does_not_matter_where_reads_split_the_bytes(cuts: list[int]) -> None:
    stream = b"".join(CHAT)
    edges = sorted({0, len(stream), *(cut % len(stream) for cut in cuts)})
    assembly = assembled([stream[start:end] for start, end in pairwise(edges)])
    assert assembly.is_done
    assert assembly.body() == assembled(CHAT).body()


def test_log_probabilities_of_all_pieces_stand_in_one_list() -> None:
    pieces = [
        event(choices=[{"text": " the", "index": 0, "logprobs": {"content": [{"token": " the"}]}}]),
        event(choices=[{"text": " end", "index": 0, "logprobs": {"content": [{"token": " end"}]}}]),
        event(
            choices=[{"text": "", "index": 0, "logprobs": None, "finish_reason": "length"}], object="text_completion"
        ),
    ]
    answer = json.loads(assembled(pieces).body())
    assert answer["object"] == "text_completion"
    assert answer["choices"] == [
        {
            "text": " the end",
            "index": 0,
            "logprobs": {"content": [{"token": " the"}, {"token": " end"}]},
            "finish_reason": "length",
        }
    ]


def test_an_answer_without_a_word_has_an_empty_one() -> None:
    pieces = [delta(role="assistant", content=None), delta(reasoning_content="Hm"), delta(reasoning_content="m.")]
    (choice,) = json.loads(assembled([*pieces, delta(finish_reason="length")]).body())["choices"]
    assert choice["message"] == {"role": "assistant", "content": "", "reasoning_content": "Hmm."}


def test_choices_stand_in_their_order() -> None:
    pieces = [delta(1, content="b"), delta(0, content="a"), delta(1, content="b")]
    choices = json.loads(assembled(pieces).body())["choices"]
    assert [choice["message"]["content"] for choice in choices] == ["a", "bb"]


@pytest.mark.parametrize(
    ("last", "problem"),
    [
        (b'data: {"error": {"code": 500, "message": "out of memory"}}\n\n', "out of memory"),
        (b"data: {half of it\n\n", "is no JSON object"),
        (b"data: 7\n\n", "is no JSON object"),
        (b'data: {"choices": [7]}\n\n', "is no chunk of an answer"),
        (b'data: {"choices": [{"delta": {"content": 7}}]}\n\n', "is no chunk of an answer"),
    ],
)
def test_an_engines_error_or_nonsense_is_a_problem(last: bytes, problem: str) -> None:
    assembly = assembled([*CHAT[:3], last])
    assert problem in assembly.problem
    assert not assembly.is_done
