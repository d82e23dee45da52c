"""The body that makes another replica go on, and what must not be continued."""

from __future__ import annotations

import json
from array import array
from typing import Any

import pytest
from msgspec import Raw

from tidegate.gateway.continued_body import objection, objection_to, tokens_left, with_ids, with_text

MESSAGES = [{"role": "user", "content": "hello"}]


def chat(**fields: Any) -> bytes:
    return json.dumps({"model": "m", "messages": MESSAGES, "stream": True, **fields}).encode()


def plain(prompt: object = "Once", **fields: Any) -> bytes:
    return json.dumps({"model": "m", "prompt": prompt, "stream": True, **fields}).encode()


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"temperature": 0, "seed": 3, "max_tokens": 9, "stop": ["\n"], "user": "u"},
        {"n": 1, "tools": [], "logprobs": False, "response_format": {"type": "text"}, "presence_penalty": 0.0},
        {"n": None, "tools": None},
    ],
)
def test_what_has_no_memory_is_continued(fields: dict[str, Any]) -> None:
    assert objection(chat(**fields), is_exact=False) == ""


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"n": 2}, "n"),
        ({"best_of": 2}, "best_of"),
        ({"logprobs": True}, "logprobs"),
        ({"logprobs": 0}, "logprobs"),
        ({"tools": [{"type": "function"}]}, "tools"),
        ({"response_format": {"type": "json_object"}}, "response_format"),
        ({"guided_json": {}}, "guided_json"),
        ({"structured_outputs": {"regex": "a"}}, "structured_outputs"),
        ({"grammar": "root ::= x"}, "grammar"),
        ({"presence_penalty": 0.5}, "presence_penalty"),
        ({"repetition_penalty": 1.1}, "repetition_penalty"),
        ({"echo": True}, "echo"),
        ({"mirostat": 2}, "mirostat"),
        ({"return_token_ids": True}, "return_token_ids"),
    ],
)
@pytest.mark.parametrize("is_exact", [False, True])
def test_what_is_not_known_to_be_safe_is_refused_by_name(fields: dict[str, Any], named: str, is_exact: bool) -> None:
    assert f" {named}" in objection(chat(**fields), is_exact=is_exact)


def test_ids_need_a_call_whose_text_is_told_as_it_comes_and_whose_draws_can_be_drawn_again() -> None:
    assert "stop strings" in objection(chat(stop=["x"]), is_exact=True)
    assert "seed" in objection(chat(seed=1), is_exact=True)
    assert objection(chat(seed=1, temperature=0, stop=[]), is_exact=True) == ""
    assert objection(plain([1, 2]), is_exact=True) == ""


def test_text_needs_one_prompt_of_text_and_an_answer_that_is_not_begun() -> None:
    assert objection(plain(), is_exact=False) == ""
    assert "one text" in objection(plain([1, 2]), is_exact=False)
    begun = [*MESSAGES, {"role": "assistant", "content": "Well"}]
    assert "assistant" in objection(chat(messages=begun), is_exact=False)
    assert "assistant" in objection(chat(messages=[]), is_exact=False)


@pytest.mark.parametrize("text", ["a <|im_end|>", "</s>", "<end_of_turn>", "[/INST]", "x|>"])
def test_text_that_looks_like_a_special_token_is_refused(text: str) -> None:
    assert "special token" in objection_to(text)
    assert objection_to("a < b | c > d <s") == ""


def test_bounds_are_lowered_by_what_is_written() -> None:
    assert tokens_left(chat(), 5, None) is None
    assert tokens_left(plain(), 5, 16) == 11
    assert tokens_left(chat(max_tokens=-1), 5, None) is None
    assert tokens_left(chat(max_tokens=9, max_completion_tokens=7), 5, 16) == 2
    body = json.loads(with_text(chat(max_tokens=9, min_tokens=3, n_predict=-1), Raw(b""), "so far", 5, None))
    assert (body["max_tokens"], body["min_tokens"], body["n_predict"]) == (4, 0, -1)


def test_text_stands_at_the_end_of_the_prompt() -> None:
    body = json.loads(with_text(chat(temperature=0), Raw(b""), 'so "far" \n', 2, None))
    assert body["messages"] == [*MESSAGES, {"role": "assistant", "content": 'so "far" \n'}]
    assert body["temperature"] == 0
    # Where the gateway sends ids in the place of a prompt, they are not those of the longer one.
    assert json.loads(with_text(plain([1]), Raw(b'"Once"'), " upon", 2, None))["prompt"] == "Once upon"
    assert json.loads(with_text(plain(), Raw(b'"Once"'), " upon", 2, 16))["max_tokens"] == 14


def test_ids_go_on_as_a_completion() -> None:
    prompt, ids = array("I", [1, 2]), array("I", [3])
    body = json.loads(with_ids(chat(max_completion_tokens=5, tools=[], top_p=0.5), prompt, ids, 4096))
    assert body == {"model": "m", "stream": True, "top_p": 0.5, "prompt": [1, 2, 3], "max_tokens": 4}
    assert json.loads(with_ids(chat(), prompt, ids, 4096))["max_tokens"] == 4095
    assert json.loads(with_ids(plain("Once", max_tokens=4), prompt, ids, 4096))["max_tokens"] == 3
    assert json.loads(with_ids(plain("Once"), prompt, ids, 16))["max_tokens"] == 15
