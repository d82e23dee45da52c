"""Who said how many tokens a prompt has."""

from __future__ import annotations

from enum import StrEnum


class TokenSource(StrEnum):
    """From the least certain to what is charged for."""

    ESTIMATE = "estimate"
    """Nobody counted: bytes over the ratio learned from usage."""
    CLIENT = "client"
    """The client sent token ids."""
    TOKENIZER = "tokenizer"
    """The tokenizer file that is configured for the upstream."""
    ENGINE = "engine"
    """The engine's own tokenizer, asked beforehand."""
    USAGE = "usage"
    """The engine's answer."""
