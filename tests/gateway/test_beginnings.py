"""Digests of a prompt's beginnings: equal as far as two prompts are."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from tidegate.gateway.beginnings import FIRST_BYTES, WHOLE_BYTES, beginnings
from tidegate.wire.body import Body


def body(text: str, **fields: object) -> Body:
    return Body(json.dumps({"model": "m", "messages": [{"role": "user", "content": text}], **fields}).encode())


def digests(text: str) -> list[int]:
    return [digest for digest, _ in beginnings(body(text), None)]


def test_a_short_prompt_has_none() -> None:
    assert beginnings(body("x" * 400), None) == ()
    assert beginnings(Body(b"{}"), None) == ()


def test_there_is_one_at_every_doubling_the_longest_first_with_its_share() -> None:
    found = beginnings(body("x" * 5000), None)
    text_bytes = body("x" * 5000).text_bytes
    assert [share for _, share in found] == [end / text_bytes for end in (4096, 2048, 1024, 512)]


def test_a_session_stands_for_the_whole_prompt_and_comes_first() -> None:
    with_session = beginnings(body("x" * 600), "alice")
    assert with_session[0][1] == 1.0
    assert with_session[1:] == beginnings(body("x" * 600), None)
    assert beginnings(body("x"), "alice")[0] == with_session[0] != beginnings(body("x"), "bob")[0]


@given(st.integers(0, WHOLE_BYTES), st.integers(0, WHOLE_BYTES))
def test_they_are_equal_up_to_where_prompts_part(common: int, own: int) -> None:
    one, other = "a" * common + "b" * own, "a" * common + "c" * own
    shared = [mine == theirs for mine, theirs in zip(reversed(digests(one)), reversed(digests(other)), strict=True)]
    opening = len('[{"role": "user", "content": "')
    assert sum(shared) == sum(FIRST_BYTES * 2**power <= opening + common or own == 0 for power in range(len(shared)))


def test_the_order_of_fields_and_what_else_is_asked_change_nothing() -> None:
    assert beginnings(body("x" * 900, stream=True, temperature=0.3), None) == beginnings(body("x" * 900), None)


def test_a_legacy_prompt_has_them_too() -> None:
    assert len(beginnings(Body(json.dumps({"prompt": "x" * 1500}).encode()), None)) == 2
