"""The parts of llama.cpp's answers that are read."""

from __future__ import annotations

import msgspec


class EngineSlot(msgspec.Struct):
    """One entry of /slots."""

    n_ctx: int
    is_processing: bool


class GenerationSettings(msgspec.Struct):
    """Part of /props."""

    n_ctx: int
    """Of one slot."""


class Props(msgspec.Struct):
    """The answer of /props."""

    total_slots: int
    default_generation_settings: GenerationSettings


class Counted(msgspec.Struct):
    """The answer of /v1/chat/completions/input_tokens."""

    input_tokens: int


class Templated(msgspec.Struct):
    """The answer of /apply-template."""

    prompt: str


class Tokenized(msgspec.Struct):
    """The answer of /tokenize."""

    tokens: list[int]
