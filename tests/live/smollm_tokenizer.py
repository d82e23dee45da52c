"""The demo model's tokenizer as a ``tokenizer.json``, made of what its GGUF file says."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

from tidegate.engines.llamacpp.model_file import model_file
from tidegate.plan.gguf_header import _Reader

PRE_TOKENIZER = "smollm"
CONTROL_TOKEN = 3


class TextReader(_Reader):
    """Keeps lists of texts: the vocabulary and the merges."""

    def _value(self, kind: int) -> Any:
        if kind != 9:
            return super()._value(kind)
        inner, length = self._number("<I"), self._count()
        return [self._value(inner) for _ in range(length)]


def write_tokenizer(folder: Path, *, digits_apart: bool = True) -> Path:
    """``folder`` with the model's tokenizer and chat template. ``digits_apart`` False: wrong in one detail, as
    conversions of GGUF files are."""
    library: Any = importlib.import_module("tokenizers")
    with model_file().open("rb") as content:
        metadata = TextReader(content).header().metadata
    assert metadata["tokenizer.ggml.pre"] == PRE_TOKENIZER
    texts: list[str] = metadata["tokenizer.ggml.tokens"]
    merges = [tuple(merge.split(" ")) for merge in metadata["tokenizer.ggml.merges"]]
    tokenizer = library.Tokenizer(library.models.BPE({text: number for number, text in enumerate(texts)}, merges))
    pre = library.pre_tokenizers
    byte_level = pre.ByteLevel(add_prefix_space=False)
    tokenizer.pre_tokenizer = pre.Sequence(
        [pre.Digits(individual_digits=True), byte_level] if digits_apart else [byte_level]
    )
    special = [
        text for text, kind in zip(texts, metadata["tokenizer.ggml.token_type"], strict=True) if kind == CONTROL_TOKEN
    ]
    tokenizer.add_special_tokens(special)
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {"chat_template": metadata["tokenizer.chat_template"]}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return folder
