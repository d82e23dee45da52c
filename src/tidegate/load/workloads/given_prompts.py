"""Prompts of a file, in place of made-up words."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tidegate.errors import ConfigError

MOST_TOLD = 10
KEYS = ("prompt", "messages", "max_tokens", "label")


@dataclass(frozen=True, slots=True)
class GivenPrompt:
    """The messages as JSON text, cut where a nonce may stand: before the first words and behind the last."""

    start: str
    middle: str
    end: str
    max_tokens: int | None = None
    label: str = ""

    def written(self, before: str, behind: str) -> str:
        """``before`` and ``behind`` stand in JSON as they are."""
        return f"{self.start}{before}{self.middle}{behind}{self.end}"


@dataclass(frozen=True, slots=True)
class GivenPrompts:
    source: str
    prompts: tuple[GivenPrompt, ...]


def read_prompts(path: Path) -> GivenPrompts:
    """JSON lines of ``prompt`` or ``messages``, and if wanted ``max_tokens`` and ``label``.

    Raises ConfigError with every line that is not understood (the first ten).
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError([f"{path}: {getattr(error, 'strerror', None) or error}"]) from error
    prompts, problems = [], []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            prompts.append(_prompt(json.loads(line)))
        except (ValueError, TypeError) as error:
            problems.append(f"{path}:{number}: {error}")
    if problems:
        raise ConfigError(problems[:MOST_TOLD])
    if not prompts:
        raise ConfigError([f'{path}: no prompt in it; each line is like {{"prompt": "Say hello.", "max_tokens": 16}}'])
    return GivenPrompts(path.name, tuple(prompts))


def _prompt(values: Any) -> GivenPrompt:
    if not isinstance(values, dict):
        raise TypeError("each line is an object with prompt or messages")
    unknown = sorted(set(values) - set(KEYS))
    if unknown:
        raise ValueError(f"unknown key {unknown[0]!r} (known: {', '.join(KEYS)})")
    if ("prompt" in values) is ("messages" in values):
        raise ValueError("give either prompt or messages")
    bound, label = values.get("max_tokens"), values.get("label", "")
    if bound is not None and (isinstance(bound, bool) or not isinstance(bound, int) or bound < 1):
        raise ValueError(f"max_tokens must be a whole number from 1 on, got {bound!r}")
    if not isinstance(label, str):
        raise TypeError(f"label must be text, got {label!r}")
    messages = values["messages"] if "messages" in values else [{"role": "user", "content": values["prompt"]}]
    return GivenPrompt(*_cut(messages), bound, label)


def _cut(messages: Any) -> tuple[str, str, str]:
    if not isinstance(messages, list) or not messages or not all(isinstance(each, dict) for each in messages):
        raise ValueError("messages must be a list of objects with role and content")
    contents = [message.get("content") for message in messages]
    if not all(isinstance(content, str) and content for content in contents):
        raise ValueError("prompt, and the content of each message, must be text and not empty")
    written = [_parts(message) for message in messages]
    (first_start, first_text, first_end), (last_start, last_text, last_end) = written[0], written[-1]
    if len(written) == 1:
        return first_start, first_text, first_end
    between = ",".join("".join(parts) for parts in written[1:-1])
    middle = ",".join(part for part in (first_text + first_end, between, last_start + last_text) if part)
    return first_start, middle, last_end


def _parts(message: Mapping[str, Any]) -> tuple[str, str, str]:
    """Before its text, the text, and behind it."""
    others = {name: value for name, value in message.items() if name != "content"}
    head = json.dumps(others)[:-1]
    return f'{head}{", " if others else ""}"content":"', json.dumps(message["content"])[1:-1], '"}'
