from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.wire.message_roles import MOST_DECODED_BYTES, roles_problem

MESSAGES = st.lists(
    st.fixed_dictionaries(
        {"content": st.text() | st.lists(st.fixed_dictionaries({"type": st.just("text"), "text": st.text()}))},
        optional={"role": st.sampled_from(["user", "assistant", 'the "role"']), "name": st.text()},
    ),
    min_size=1,
)


@given(MESSAGES)
def test_a_message_without_a_role_is_found_whatever_the_texts_hold(messages: list[dict[str, Any]]) -> None:
    problem = roles_problem(json.dumps(messages).encode())
    missing = [place for place, message in enumerate(messages) if "role" not in message]
    assert (problem == "") == (not missing)
    assert not missing or f"messages[{missing[0]}]" in problem


@pytest.mark.parametrize(
    ("messages", "said"),
    [
        ('["hello"]', "Expected `object`, got `str` - at `messages[0]`"),
        ('[{"role": 1, "x": {}}]', "Expected `str`, got `int` - at `messages[0].role`"),
        ('"hello"', "Expected `array`, got `str`"),
        ('[{"role": "user"}', ""),
        ("[{", ""),
    ],
)
def test_what_is_wrong_is_said_with_its_place_and_broken_json_is_said_elsewhere(messages: str, said: str) -> None:
    assert roles_problem(messages.encode()) == said


def test_long_messages_of_several_parts_are_not_decoded() -> None:
    parts = [{"type": "image_url", "image_url": {"url": "x" * MOST_DECODED_BYTES}}]
    assert roles_problem(json.dumps([{"content": parts}]).encode()) == ""
