"""Counts and ids are those of the library, however a text is cut and whatever was seen before."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.gateway.made_tokenizer import SPECIAL, TEXTS, change, make_tokenizer
from tidegate.errors import ConfigError
from tidegate.gateway.piece_cache import PieceCache
from tidegate.gateway.tokenizer import Tokenizer
from tidegate.gateway.tokenizing_messages import Counted

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"
PIECES = st.sampled_from([*SPECIAL, *TEXTS, " ", "\n\n", "<|im_", "end|>", "<|im_start|>user\n", "x" * 70, "1 2 3"])
LONG = TEXTS[0] * 2


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tokenizer(tmp_path_factory.mktemp("tokenizer"))


@pytest.fixture(scope="module")
def tokenizer(folder: Path) -> Tokenizer:
    return Tokenizer(str(folder), PieceCache())


def completion(tokenizer: Tokenizer, prompt: object, **fields: object) -> Counted:
    return tokenizer.count(COMPLETIONS, json.dumps({"prompt": prompt, **fields}).encode(), wants_ids=True)


def chat(tokenizer: Tokenizer, *contents: object, **fields: object) -> Counted:
    messages = [{"role": "user", "content": content} for content in contents]
    return tokenizer.count(CHAT, json.dumps({"messages": messages, **fields}).encode(), wants_ids=False)


@given(st.lists(PIECES | st.text(max_size=100), max_size=12))
def test_a_prompt_in_pieces_has_the_ids_of_the_whole(tokenizer: Tokenizer, pieces: list[str]) -> None:
    text = "".join(pieces)
    found = completion(tokenizer, text)
    expected = tokenizer.ids(text)
    assert json.loads(found.prompt_ids or b"") == expected
    assert found.tokens == (len(expected),)


def test_what_the_tokenizer_adds_stands_where_it_belongs(tmp_path: Path) -> None:
    tokenizer = Tokenizer(str(make_tokenizer(tmp_path, adds_bos=True)), PieceCache())
    found = completion(tokenizer, TEXTS[0])
    ids = json.loads(found.prompt_ids or b"")
    assert (ids[0], ids[-1], ids) == (1, 0, tokenizer.ids(TEXTS[0]))
    assert found.tokens == (len(ids),)
    assert completion(tokenizer, "").tokens == (2,)
    assert chat(tokenizer, "hi").tokens == chat(Tokenizer(str(tmp_path), PieceCache()), "hi").tokens


def test_a_chat_is_rendered_by_its_template_before_it_is_counted(tokenizer: Tokenizer) -> None:
    rendered = "<|im_start|>user\nhello 🦆<|im_end|>\n<|im_start|>assistant\n"
    assert chat(tokenizer, "hello 🦆") == Counted((len(tokenizer.ids(rendered)),))


def test_of_several_prompts_each_is_counted_and_no_ids_are_made(tokenizer: Tokenizer) -> None:
    found = completion(tokenizer, ["one", TEXTS[1]])
    assert found == Counted((len(tokenizer.ids("one")), len(tokenizer.ids(TEXTS[1]))))


@pytest.mark.parametrize("field", ["echo", "suffix", "add_special_tokens", "truncate_prompt_tokens"])
def test_ids_are_not_made_where_the_engine_needs_the_text(tokenizer: Tokenizer, field: str) -> None:
    found = completion(tokenizer, "text", **{field: True})
    assert found.tokens is not None
    assert found.prompt_ids is None


@pytest.mark.parametrize(
    "body",
    [b"{", b"[]", b"{}", b'{"prompt": []}', b'{"prompt": [1, 2]}', b'{"prompt": 5}', b'{"prompt": ["a", [1]]}'],
)
def test_what_is_no_text_is_left_to_others(tokenizer: Tokenizer, body: bytes) -> None:
    assert tokenizer.count(COMPLETIONS, body, wants_ids=True) == Counted()
    assert tokenizer.count(CHAT, body, wants_ids=True) == Counted()
    assert tokenizer.count("/v1/embeddings", body, wants_ids=True) == Counted()


@pytest.mark.parametrize("field", ["tools", "chat_template", "chat_template_kwargs", "response_format"])
def test_a_chat_of_which_engines_make_something_of_their_own_is_left_to_them(tokenizer: Tokenizer, field: str) -> None:
    assert chat(tokenizer, "hi", **{field: {}}) == Counted()


@pytest.mark.parametrize(
    "message",
    [
        {"role": "user", "content": [{"type": "text", "text": "hi"}]},
        {"role": "assistant", "content": "x", "tool_calls": []},
        {"role": 1, "content": "x"},
        "hi",
    ],
)
def test_only_plain_messages_are_rendered(tokenizer: Tokenizer, message: object) -> None:
    body = json.dumps({"messages": [message]}).encode()
    assert tokenizer.count(CHAT, body, wants_ids=False) == Counted()


def test_the_turns_before_are_taken_from_the_cache(folder: Path) -> None:
    cache = PieceCache()
    tokenizer = Tokenizer(str(folder), cache)
    asked: list[list[str]] = []
    real = tokenizer._tokenizer

    class Watched:
        def encode_batch_fast(self, texts: list[str], *, add_special_tokens: bool) -> Any:
            asked.append(texts)
            return real.encode_batch_fast(texts, add_special_tokens=add_special_tokens)

    tokenizer._tokenizer = Watched()
    first, second = chat(tokenizer, LONG), chat(tokenizer, LONG, "And then?")
    assert [any(LONG in text for text in texts) for texts in asked] == [True, False]
    assert first.tokens is not None
    assert second.tokens is not None
    assert first.tokens < second.tokens


def test_a_piece_that_was_only_counted_is_tokenized_again_for_its_ids(folder: Path) -> None:
    tokenizer = Tokenizer(str(folder), PieceCache())
    body = json.dumps({"prompt": LONG}).encode()
    counted = tokenizer.count(COMPLETIONS, body, wants_ids=False)
    with_ids = tokenizer.count(COMPLETIONS, body, wants_ids=True)
    assert counted == Counted(with_ids.tokens)
    assert json.loads(with_ids.prompt_ids or b"") == tokenizer.ids(LONG)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("added_tokens", 2, "rstrip"), True),
        (("pre_tokenizer", "pretokenizers", 0, "add_prefix_space"), True),
        (("normalizer",), {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "_"}]}),
        (("pre_tokenizer",), {"type": "Metaspace", "replacement": "_", "prepend_scheme": "first", "split": True}),
    ],
)
def test_where_a_piece_would_know_of_its_place_nothing_is_cut(
    tmp_path: Path, path: tuple[str | int, ...], value: object
) -> None:
    change(make_tokenizer(tmp_path), path, value)
    tokenizer = Tokenizer(str(tmp_path), PieceCache())
    text = "<|im_start|> a <|im_end|>  b <|im_start|>c"
    assert tokenizer._cut is None
    assert json.loads(completion(tokenizer, text).prompt_ids or b"") == tokenizer.ids(text)


def test_a_length_to_which_a_file_cuts_or_fills_prompts_does_not_count(tmp_path: Path) -> None:
    make_tokenizer(tmp_path)
    truncation = {"direction": "Right", "max_length": 3, "strategy": "LongestFirst", "stride": 0}
    change(tmp_path, ("truncation",), truncation)
    (tokens,) = completion(Tokenizer(str(tmp_path), PieceCache()), TEXTS[0]).tokens or ()
    assert tokens > 3


def test_a_file_that_is_missing_or_none_of_its_kind_is_refused_with_words(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no such file"):
        Tokenizer(str(tmp_path / "missing"), PieceCache())
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(ConfigError, match=r"tokenizer .*tokenizer\.json: "):
        Tokenizer(str(tmp_path), PieceCache())


@pytest.mark.parametrize("library", ["tokenizers", "jinja2"])
def test_a_missing_library_is_named_with_the_extra_that_brings_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch, library: str
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    monkeypatch.setitem(sys.modules, f"{library}.sandbox", None)
    with pytest.raises(ConfigError, match=r"pip install 'tidegate\[tokenizers\]'"):
        Tokenizer(str(folder), PieceCache())
