"""What the data process and a tokenizer process say to each other, framed as on the channel to the parent."""

from __future__ import annotations

from tidegate.gateway.messages import Message


class Count(Message):
    """Down: count the prompts of the request ``body`` that was sent to ``path``."""

    tokenizer: str
    """Path of the tokenizer.json or of its folder."""
    path: str
    body: bytes
    wants_ids: bool = False


class Tokenize(Message):
    """Down: the ids of a completion prompt, to be compared with an engine's."""

    tokenizer: str
    text: str


class Counted(Message):
    """Up, answers ``Count``."""

    tokens: tuple[int, ...] | None = None
    """Of each prompt; None: only the engine can tell."""
    prompt_ids: bytes | None = None
    """JSON list that means the same as the prompt's text."""


class Tokenized(Message):
    """Up, answers ``Tokenize``."""

    ids: list[int]


class Unusable(Message):
    """Up, answers either: the tokenizer cannot be used, and why."""

    problem: str


Question = Count | Tokenize
Told = Counted | Tokenized | Unusable
