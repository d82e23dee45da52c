from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.errors import ProtocolError
from tidegate.wire.body import CUT_ABOVE_BYTES, Body

URI = "data:image/png;base64," + "QUJD" * 30_000
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=10)


def image(url: str) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url}}


def chat(*parts: Any, **fields: Any) -> bytes:
    return json.dumps({"model": "m", "messages": [{"role": "user", "content": list(parts)}], **fields}).encode()


def test_the_fields_that_decide_something_are_read() -> None:
    body = Body(b'{"model": "m", "stream": true, "max_tokens": 5, "n": 2, "user": "u", "messages": [], "seed": 1}')
    fields = body.fields
    assert (fields.model, fields.stream, fields.max_tokens, fields.n, fields.user) == ("m", True, 5, 2, "u")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b"", "truncated"),
        (b"[1]", "object"),
        (b'"text"', "object"),
        (b'{"model": 5}', "model"),
        (b'{"stream": "yes"}', "stream"),
        (b'{"max_tokens": "5"}', "max_tokens"),
        (b'{"model": "m"', "truncated"),
        (b'{"model": "\xff"}', "utf-8|UTF-8"),
    ],
)
def test_what_is_no_json_object_is_refused_with_the_place(text: bytes, says: str) -> None:
    with pytest.raises(ProtocolError, match=says):
        Body(text)


@pytest.mark.parametrize("field", ["messages", "unknown", "stream_options"])
@pytest.mark.parametrize(("opened", "closed"), [(b"[", b"]"), (b'{"a":', b"}")])
def test_values_nested_without_end_are_refused_and_break_nothing(field: str, opened: bytes, closed: bytes) -> None:
    text = b'{"model":"m","%b":%b1%b}' % (field.encode(), opened * 100_000, closed * 100_000)
    with pytest.raises(ProtocolError, match=r"too deep|Expected"):
        Body(text)


@pytest.mark.parametrize(
    ("field", "value", "prompts", "tokens"),
    [
        ("prompt", "some text", 1, None),
        ("prompt", ["one", "two", "three"], 3, None),
        ("prompt", [1, 22, 333], 1, 3),
        ("prompt", [[1, 2], [3]], 2, 3),
        ("input", "some text", 1, None),
        ("input", ["a, b", "[c]"], 2, None),
        ("messages", [{"role": "user", "content": "hi"}], 1, None),
        ("prompt", [], 1, None),
        ("prompt", ["one", 2], 1, None),
    ],
)
def test_prompts_are_counted_in_all_their_forms(field: str, value: Any, prompts: int, tokens: int | None) -> None:
    body = Body(json.dumps({"model": "m", field: value}).encode())
    assert (body.prompts, body.prompt_tokens) == (prompts, tokens)
    assert body.text_bytes == len(json.dumps(value))


@pytest.mark.parametrize("text_bytes", [10, 2 * CUT_ABOVE_BYTES])
def test_images_are_counted_as_images_not_as_bytes(text_bytes: int) -> None:
    text = {"type": "text", "text": "x" * text_bytes}
    body = Body(chat(text, image(URI), image(URI), image("https://host/a.png")))
    assert body.images == 3
    assert text_bytes < body.text_bytes < text_bytes + 1000


def test_words_about_images_are_no_images() -> None:
    assert Body(chat({"type": "text", "text": 'an "image_url" of {"type":"image_url"}'})).images == 0


def test_an_edit_leaves_every_other_value_byte_for_byte() -> None:
    text = b'{ "model" : "alias", "temperature":1.50e0, "messages":[ {"content":"\\u00e9 \xc3\xa9"} ] , "seed":007e}'
    text = text.replace(b"007e", b"7E0")
    edited = Body(text).edited({"model": "real/name", "max_tokens": 12})
    assert edited == (
        b'{"model":"real/name","temperature":1.50e0,"messages":[ {"content":"\\u00e9 \xc3\xa9"} ],'
        b'"seed":7E0,"max_tokens":12}'
    )


@given(st.dictionaries(st.text().filter(lambda name: name not in ("model", "max_tokens")), VALUES))
def test_an_edited_body_differs_only_in_what_was_changed(members: dict[str, Any]) -> None:
    try:
        body = Body(json.dumps({"model": "a", **members}).encode())
    except ProtocolError:
        return
    assert json.loads(body.edited({"model": "b", "max_tokens": 3})) == {**members, "model": "b", "max_tokens": 3}


@pytest.mark.parametrize(
    "tricky",
    [
        'text with "data:' + "x" * 2000,
        "tidegate:cut:0",
        "data:" + "x" * 2000 + '"',
        "data:" + "x" * 2000 + "\\",
    ],
)
def test_a_body_with_large_images_survives_an_edit(tricky: str) -> None:
    text = chat(image(URI), {"type": "text", "text": tricky}, image(URI + "second"), extra=image(URI + "third"))
    assert json.loads(Body(text).edited({"model": "b"})) == {**json.loads(text), "model": "b"}
    assert Body(text).edited({}) == text


def test_a_repeated_key_takes_its_last_value_and_that_values_images() -> None:
    text = b'{"model":"a","messages":["' + URI.encode() + b'"],"messages":["' + URI.encode() + b'2"]}'
    assert json.loads(Body(text).edited({"model": "b"})) == {"model": "b", "messages": [URI + "2"]}


@pytest.mark.parametrize("text", [b'{"\xff":1}', b'{"a":"\xff"}', b'{"a":"\xed\xa0\x80"}', b'{"a":{"b\xc3":1}}'])
def test_what_is_not_utf8_is_refused_before_anything_is_done_with_it(text: bytes) -> None:
    with pytest.raises(ProtocolError, match="UTF-8"):
        Body(text)
