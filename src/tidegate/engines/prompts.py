"""What has to be counted in a request, one entry for each prompt."""

from __future__ import annotations

from typing import Any

import msgspec

CHAT = "/v1/chat/completions"
COMPLETIONS = "/v1/completions"

MOST_PROMPTS = 64
"""Longer lists are left to the estimate: each prompt is a call."""


def completion_prompts(body: bytes) -> list[str | int] | None:
    """The prompts of a completion request: a text, or the length of a prompt that came as token ids.

    None when ``body`` has no prompt that could be counted.
    """
    try:
        prompt = msgspec.json.decode(body, type=dict[str, Any]).get("prompt")
    except msgspec.DecodeError:
        return None
    if isinstance(prompt, str):
        return [prompt]
    if not isinstance(prompt, list) or not prompt:
        return None
    if all(isinstance(token, int) for token in prompt):
        return [len(prompt)]
    if len(prompt) > MOST_PROMPTS or not all(isinstance(each, str | list) for each in prompt):
        return None
    return [each if isinstance(each, str) else len(each) for each in prompt]


def chat_fields(body: bytes, names: frozenset[str]) -> dict[str, Any] | None:
    """Those of the ``names`` that a chat request has; None when it has no messages."""
    try:
        fields = msgspec.json.decode(body, type=dict[str, Any])
    except msgspec.DecodeError:
        return None
    if not isinstance(fields.get("messages"), list):
        return None
    return {name: value for name, value in fields.items() if name in names}
