"""The prompt in a body: whether it says anything, and a shorter one that says most of it."""

from __future__ import annotations

import re
from typing import Any

import msgspec

LOOKED_AT_BYTES = 4096
MOST_DECODED_BYTES = 64 * 1024
"""A longer prompt is taken to say something."""

_SAYS = re.compile(rb'"(?:content|text)"\s*:\s*"(?:\\[ntrfb]|\s)*+(?:[^"\s\\]|\\["\\/u])')
CUT = "\n[…]\n"
"""Stands where the middle of a prompt was taken out."""


def is_blank(messages: bytes, prompt: bytes) -> bool:
    """Whether JSON of a chat's messages, or else of a prompt (text, texts, token ids), says nothing at all."""
    if not messages:
        return len(prompt) <= MOST_DECODED_BYTES and _is_blank_prompt(_decoded(prompt))
    if _SAYS.search(messages, 0, LOOKED_AT_BYTES) is not None or len(messages) > MOST_DECODED_BYTES:
        return False
    found = _decoded(messages)
    if found is None:
        return True
    return isinstance(found, list) and all(_is_blank_message(each) for each in found)


def _decoded(raw: bytes) -> Any:
    """None for nothing, and for null."""
    try:
        return msgspec.json.decode(raw) if raw else None
    except (msgspec.DecodeError, RecursionError):
        return raw


def _is_blank_prompt(prompt: Any) -> bool:
    if isinstance(prompt, str):
        return not prompt.strip()
    if isinstance(prompt, list):
        return all(_is_blank_prompt(each) for each in prompt)
    return prompt is None


def _is_blank_message(message: Any) -> bool:
    if not isinstance(message, dict):
        return False
    if any(message.get(name) for name in ("tool_calls", "function_call", "refusal", "audio")):
        return False
    content = message.get("content")
    if isinstance(content, list):
        return all(_is_blank_part(part) for part in content)
    return content is None or (isinstance(content, str) and not content.strip())


def _is_blank_part(part: Any) -> bool:
    """Of a message; what is no text says something."""
    if isinstance(part, str):
        return not part.strip()
    text = part.get("text") if isinstance(part, dict) and part.get("type") in ("text", "input_text") else None
    return isinstance(text, str) and not text.strip()


def shortened_messages(messages: bytes, most_bytes: int) -> bytes | None:
    """The messages without the oldest ones that are not the system's, at most ``most_bytes`` of JSON; the last one
    stays, and loses the middle of its text if need be. None: they cannot be made so short.

    A tool's result whose call is gone goes with it: engines refuse one without the other.
    """
    try:
        kept: list[msgspec.Raw] = msgspec.json.decode(messages, type=list[msgspec.Raw])
        roles = [_role(raw) for raw in kept]
    except (msgspec.DecodeError, RecursionError):
        return None
    size, last = len(messages), len(kept) - 1
    while last > 0 and roles[last] == "tool":
        last -= 1
    for index in range(last):
        if size <= most_bytes and roles[index] != "tool":
            break
        if roles[index] not in ("system", "developer"):
            size -= len(bytes(kept[index])) + 1
            roles[index] = ""
    parts = [bytes(raw) for raw, role in zip(kept, roles, strict=True) if role]
    if size > most_bytes and parts:
        shorter = _shortened_message(parts[-1], len(parts[-1]) - (size - most_bytes))
        if shorter is None:
            return None
        parts[-1] = shorter
    return b"[%b]" % b",".join(parts) if parts else None


def _role(raw: msgspec.Raw) -> str:
    message = msgspec.json.decode(bytes(raw), type=dict[str, msgspec.Raw])
    return bytes(message.get("role", b'"user"')).decode("utf-8", "replace").strip('"') or "user"


def _shortened_message(message: bytes, most_bytes: int) -> bytes | None:
    found = msgspec.json.decode(message)
    text = found.get("content")
    if not isinstance(text, str):
        return None
    shorter = shortened_text(text, most_bytes - (len(message) - len(msgspec.json.encode(text))))
    return None if shorter is None else msgspec.json.encode({**found, "content": shorter})


def shortened_prompt(prompt: bytes, most_bytes: int) -> bytes | None:
    """A prompt of one text without its middle, at most ``most_bytes`` of JSON. None: it is no text, or too short."""
    text = _decoded(prompt)
    shorter = shortened_text(text, most_bytes) if isinstance(text, str) else None
    return None if shorter is None else msgspec.json.encode(shorter)


def shortened_text(text: str, most_bytes: int) -> str | None:
    """``text`` without its middle, at most ``most_bytes`` as JSON. None: nothing would be left."""
    size = len(msgspec.json.encode(text))
    if size <= most_bytes:
        return text
    characters = int(len(text) * most_bytes / size)
    while characters > 2 * len(CUT):
        head = (characters - len(CUT)) // 2
        shorter = text[:head] + CUT + text[len(text) - head :]
        if len(msgspec.json.encode(shorter)) <= most_bytes:
            return shorter
        characters = characters * 9 // 10
    return None
