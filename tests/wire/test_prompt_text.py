"""What says nothing, and what is left of a prompt that was made shorter."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.wire.prompt_text import (
    CUT,
    MOST_DECODED_BYTES,
    is_blank,
    shortened_messages,
    shortened_prompt,
    shortened_text,
)


def chat(*messages: Any) -> bytes:
    return json.dumps(list(messages)).encode()


def user(content: Any, **more: Any) -> dict[str, Any]:
    return {"role": "user", "content": content, **more}


@pytest.mark.parametrize(
    ("messages", "blank"),
    [
        (chat(), True),
        (b"null", True),
        (chat(user("")), True),
        (chat(user(" \n\t "), user(None)), True),
        (chat(user([])), True),
        (chat(user([{"type": "text", "text": " "}, "\n"])), True),
        (chat(user("hi")), False),
        (chat(user('"')), False),
        (chat(user("\\")), False),
        (chat(user("é")), False),
        (chat(user([{"type": "text", "text": "hi"}])), False),
        (chat(user([{"type": "image_url", "image_url": {"url": "http://x/y.png"}}])), False),
        (chat(user(["hi"])), False),
        (chat(user(5)), False),
        (chat({"role": "system", "content": "You are."}, user("")), False),
        (chat({"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]}), False),
        (chat("nonsense"), False),
        (b'{"not":"a list"}', False),
        (chat({"filler": "x" * 5000}, user("")), True),
        (chat({"filler": "x" * 5000}, user("a")), False),
        (chat({"filler": "x" * MOST_DECODED_BYTES}, user("")), False),
        (b"[" * 100_000, False),
        (b"[" * 5_000, False),
    ],
)
def test_blank_chats(messages: bytes, blank: bool) -> None:
    assert is_blank(messages, b"") is blank


@pytest.mark.parametrize(
    ("prompt", "blank"),
    [
        (b"", True),
        (b"null", True),
        (b'""', True),
        (b'" \\n"', True),
        (b"[]", True),
        (b'["", " "]', True),
        (b"[[]]", True),
        (b'"x"', False),
        (b'["", "x"]', False),
        (b"[1]", False),
        (b"[[1]]", False),
        (b'{"prompt_string": "x"}', False),
        (b'"' + b" " * MOST_DECODED_BYTES + b'"', False),
    ],
)
def test_blank_prompts(prompt: bytes, blank: bool) -> None:
    assert is_blank(b"", prompt) is blank


SYSTEM = {"role": "system", "content": "Be brief."}
TURNS = [
    user(f"question {n} " * 10) if n % 2 == 0 else {"role": "assistant", "content": f"answer {n} " * 10}
    for n in range(9)
]


def shortened(most_bytes: int, *messages: Any) -> list[dict[str, Any]] | None:
    raw = shortened_messages(chat(*messages), most_bytes)
    if raw is None:
        return None
    assert len(raw) <= most_bytes
    found: list[dict[str, Any]] = json.loads(raw)
    return found


def test_the_oldest_go_first_and_the_system_and_the_last_stay() -> None:
    found = shortened(600, SYSTEM, *TURNS)
    assert found is not None
    assert found[0] == SYSTEM
    assert found[1:] == TURNS[-len(found) + 1 :]
    assert 2 < len(found) < len(TURNS)
    assert shortened(10_000, SYSTEM, *TURNS) == [SYSTEM, *TURNS]


def test_a_last_message_that_is_too_long_alone_loses_its_middle() -> None:
    found = shortened(1000, SYSTEM, *TURNS, user("begin " + "x" * 5000 + " end", name="me"))
    assert found is not None
    assert [message["role"] for message in found] == ["system", "user"]
    text = found[1]["content"]
    assert found[1]["name"] == "me"
    assert text.startswith("begin ")
    assert text.endswith(" end")
    assert CUT in text


def test_a_tools_result_goes_with_its_call_and_stays_with_it() -> None:
    call = {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "padding": "y" * 300}]}
    result = {"role": "tool", "tool_call_id": "1", "content": "z" * 50}
    found = shortened(500, SYSTEM, user("q" * 100), call, result, user("and?"))
    assert found == [SYSTEM, user("and?")]
    found = shortened(700, SYSTEM, *TURNS, call, result)
    assert found is not None
    assert found[-2:] == [call, result]


@pytest.mark.parametrize(
    "messages",
    [
        chat(),
        b"[1]",
        b"{}",
        b"nonsense",
        chat(user([{"type": "text", "text": "x" * 5000}])),
        chat(user("x" * 5000, y="z" * 900)),
    ],
)
def test_what_cannot_be_made_shorter_is_left(messages: bytes) -> None:
    assert shortened_messages(messages, 200) is None


@given(st.text(max_size=400), st.integers(0, 500))
def test_a_shortened_text_fits_and_keeps_both_ends(text: str, most_bytes: int) -> None:
    shorter = shortened_text(text, most_bytes)
    if shorter is None:
        return
    assert len(json.dumps(shorter, ensure_ascii=False).encode("utf-8", "surrogatepass")) <= most_bytes
    if shorter != text:
        head, _, tail = shorter.partition(CUT)
        assert text.startswith(head)
        assert text.endswith(tail)


def test_prompts_of_one_text_lose_their_middle_and_others_are_left() -> None:
    raw = shortened_prompt(json.dumps("a" * 500 + "b" * 500).encode(), 300)
    assert raw is not None
    assert json.loads(raw).startswith("aaa")
    assert json.loads(raw).endswith("bbb")
    assert shortened_prompt(b"[1,2,3]", 2) is None
    assert shortened_prompt(b'["a","b"]', 2) is None
    assert shortened_prompt(json.dumps("a" * 500).encode(), 10) is None
