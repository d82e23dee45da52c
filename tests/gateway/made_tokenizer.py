"""A small tokenizer with a chat template, made by the real library: no file of anybody's model is needed."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
TEMPLATE = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
TEXTS = (
    "It was the best of times, it was the worst of times, it was the age of wisdom, it was the age of foolishness",
    "def count(path: str, body: bytes) -> int:\n    return len(body)  # 0123456789\n",
    "Füße, naïve, Ελληνικά, Привет, 漢字かな交じり文 🦆 and numbers 3.14159, 2026",
)


def make_tokenizer(folder: Path, *, adds_bos: bool = False, digits_apart: bool = False) -> Path:
    """``folder`` with a byte-level BPE of some 400 tokens, as a model brings it."""
    library: Any = importlib.import_module("tokenizers")
    pre, processors = library.pre_tokenizers, importlib.import_module("tokenizers.processors")
    tokenizer = library.Tokenizer(library.models.BPE())
    byte_level = pre.ByteLevel(add_prefix_space=False)
    steps = [pre.Digits(individual_digits=True), byte_level] if digits_apart else [byte_level]
    tokenizer.pre_tokenizer = pre.Sequence(steps)
    alphabet = pre.ByteLevel.alphabet()
    trainer = library.trainers.BpeTrainer(
        vocab_size=400, special_tokens=list(SPECIAL), initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(TEXTS * 4, trainer)
    if adds_bos:
        tokenizer.post_processor = processors.TemplateProcessing(
            single="<|im_start|> $A <|endoftext|>", special_tokens=[("<|im_start|>", 1), ("<|endoftext|>", 0)]
        )
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {"bos_token": "<|im_start|>", "eos_token": {"content": "<|im_end|>"}, "chat_template": TEMPLATE}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return folder


def change(folder: Path, path: tuple[str | int, ...], value: object) -> None:
    """Set one value in the tokenizer.json of ``folder``."""
    file = folder / "tokenizer.json"
    whole = json.loads(file.read_text())
    place = whole
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    file.write_text(json.dumps(whole))
