"""A prefix of JSON stays possible, anything else is found, and cutting the text makes no difference."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.policy.output.json_progress import DEEPEST, JsonProgress

SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=6,
)


@st.composite
def json_texts(draw: st.DrawFn) -> str:
    """One value, written in one of several ways."""
    indent = draw(st.sampled_from([None, 0, 2]))
    text = json.dumps(draw(VALUES), indent=indent, ensure_ascii=draw(st.booleans()))
    blank = st.text(" \t\r\n", max_size=3)
    return draw(blank) + text + draw(blank)


def fed(*pieces: str) -> JsonProgress:
    progress = JsonProgress()
    for piece in pieces:
        progress.feed(piece)
    return progress


def cut(text: str, places: list[int]) -> list[str]:
    at = sorted({min(place, len(text)) for place in places})
    return [text[a:b] for a, b in zip([0, *at], [*at, len(text)], strict=True)]


@given(json_texts(), st.lists(st.integers(0, 300)))
def test_json_cut_anywhere_is_complete_and_never_broken(text: str, places: list[int]) -> None:
    progress = JsonProgress()
    for piece in cut(text, places):
        progress.feed(piece)
        assert not progress.is_broken, (text, progress.why)
    assert progress.is_complete
    assert not progress.is_blank


@given(st.lists(VALUES, max_size=3) | st.dictionaries(st.text(max_size=5), VALUES, max_size=3), st.data())
def test_json_that_is_truncated_is_incomplete_and_not_broken(value: Any, data: st.DataObject) -> None:
    text = json.dumps(value)
    progress = fed(text[: data.draw(st.integers(0, len(text) - 1))])
    assert not progress.is_broken
    assert not progress.is_complete


@given(st.text(alphabet='{}[]",:0123456789.eE+-truefalsn\\u \n', max_size=24), st.lists(st.integers(0, 24)))
def test_what_it_says_of_any_text_is_what_the_library_says(text: str, places: list[int]) -> None:
    try:
        json.loads(text)
        is_json = True
    except ValueError:
        is_json = False
    progress = fed(*cut(text, places))
    assert progress.is_complete == is_json
    assert fed(*text).is_broken == progress.is_broken
    assert fed(*text).why == progress.why
    if progress.is_broken:
        assert progress.why


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("```json\n{}", "no value"),
        ("Sure! Here", "no value"),
        ("nul!", "bare word"),
        ("[1,]", "no value"),
        ('{"a":1,}', "no key"),
        ("{a:1}", "no key"),
        ('{"a" 1}', "no colon"),
        ('{"a":1 "b"', "neither a comma"),
        ("[1}", "neither a comma"),
        ("{} {}", "more text"),
        ('"a\nb"', "raw control"),
        ('"\\x"', "escape"),
        ('"\\u12g"', "hexadecimal"),
        ("01", "number"),
        ("-x", "number"),
        ("1.e", "number"),
        ("[" * (DEEPEST + 1), "deep"),
        ("NaN", "no value"),
    ],
)
def test_what_breaks_json_is_said(text: str, why: str) -> None:
    progress = fed(text, "more that changes nothing")
    assert progress.is_broken
    assert why in progress.why


@pytest.mark.parametrize(
    "text", ["0", "-0", "12", "1.5", "1e5", "1E-05", "2.25e+3", "true", "false ", "null\n", "[ ]", "{ }"]
)
def test_every_kind_of_value_may_stand_alone(text: str) -> None:
    assert fed(*text).is_complete


@pytest.mark.parametrize("text", ["", "  ", "-", "1.", "1e", "1e+", "tru", '"\\', '"\\u00', '"a', "[", '{"a"', '{"a":'])
def test_what_has_only_begun_is_neither_complete_nor_broken(text: str) -> None:
    progress = fed(text)
    assert not progress.is_complete
    assert not progress.is_broken
    assert progress.is_blank is (not text.strip())


def test_escapes_and_words_may_be_cut_anywhere() -> None:
    text = r'{"a\"b": ["\n\u00e9\\", true, false, null, -1.5e+3 , 0], "": {}, "c": [[], 1]}'
    assert json.loads(text)
    assert fed(*text).is_complete
    for at in range(len(text)):
        assert fed(text[:at], text[at:]).is_complete
