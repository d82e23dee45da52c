"""What an OpenAI-compatible engine says: whole answers, events of a stream, errors, and their HTTP framing."""

from __future__ import annotations

import json
import re
from typing import Any

_WORD_AT_END = re.compile(r"w(\d{1,6}) $")
DEFAULT_TOKENS = 16
"""Of an answer whose request names no bound."""


def whole(status: bytes, body: bytes, lines: bytes = b"", content_type: bytes = b"application/json") -> bytes:
    head = b"HTTP/1.1 %b\r\ncontent-type: %b\r\n%bcontent-length: %d\r\n\r\n"
    return head % (status, content_type, lines, len(body)) + body


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def error(text: str) -> bytes:
    """In OpenAI's shape."""
    return json.dumps({"error": {"message": text, "type": "server_error", "param": None, "code": None}}).encode()


def object_of(body: bytes) -> dict[str, Any]:
    try:
        found = json.loads(body)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def wanted_tokens(body: dict[str, Any]) -> int:
    """As many as are asked for, one at least."""
    bound = body.get("max_completion_tokens", body.get("max_tokens"))
    return max(1, bound) if isinstance(bound, int) else DEFAULT_TOKENS


def words_before(body: dict[str, Any]) -> int:
    """How much of the text the prompt ends with: what is asked for is its continuation."""
    messages = body.get("messages")
    last = messages[-1] if isinstance(messages, list) and messages else {}
    text = last.get("content") if isinstance(last, dict) and last.get("role") == "assistant" else body.get("prompt")
    found = _WORD_AT_END.search(text) if isinstance(text, str) else None
    return int(found[1]) + 1 if found is not None else 0


def event_text(model: str, text: str, *, is_chat: bool, is_last: bool) -> bytes:
    """The JSON of one event."""
    choice: dict[str, Any] = {"index": 0, "finish_reason": "length" if is_last else None}
    choice |= {"delta": {"content": text}} if is_chat else {"text": text}
    kind = "chat.completion.chunk" if is_chat else "text_completion"
    shown = {"id": "made", "object": kind, "created": 0, "model": model, "choices": [choice]}
    return json.dumps(shown, separators=(",", ":")).encode()


def whole_text(model: str, first: int, tokens: int, *, is_chat: bool) -> bytes:
    """The JSON of a whole answer of so many tokens, from the word ``first`` on."""
    text = "".join(f"w{number} " for number in range(first, first + tokens))
    choice: dict[str, Any] = {"index": 0, "finish_reason": "length"}
    choice |= {"message": {"role": "assistant", "content": text}} if is_chat else {"text": text}
    usage = {"prompt_tokens": 8, "completion_tokens": tokens, "total_tokens": 8 + tokens}
    kind = "chat.completion" if is_chat else "text_completion"
    shown = {"id": "made", "object": kind, "created": 0, "model": model, "choices": [choice], "usage": usage}
    return json.dumps(shown).encode()
