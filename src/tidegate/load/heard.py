"""What a client heard, from the head of an answer to its end."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import msgspec

from tidegate.load.answer_scan import AnswerScan, Usage


class End(StrEnum):
    """How the exchange ended, whatever was said in it."""

    COMPLETE = "complete"
    """As HTTP frames it."""
    LOST = "lost"
    """The connection ended first, or sent no HTTP."""
    LEFT = "left"
    """The client waited long enough."""
    NO_CONNECTION = "no_connection"
    UNSENT = "unsent"
    """It never began: the run was ended, or this machine had no socket left."""


@dataclass(slots=True, kw_only=True)
class Heard:
    end: End
    problem: str = ""
    """Why it did not complete: an exception's name or a few words in its place."""
    status: int = 0
    """0: no head came."""
    degraded: str = ""
    label: str = ""
    """What the gateway says is wrong with the answer (``x-tidegate-output``)."""
    is_stream: bool = False
    is_done: bool = False
    """The stream said that it is whole; a whole answer is JSON."""
    parts: int = 0
    """Pieces with text, a tool call, a refusal: of a whole answer, its choices (or data) that have one."""
    has_error: bool = False
    """An error in place of an answer, or in the middle of one."""
    error_code: str = ""
    text: str | None = None
    """None: nobody asked for it, or it cannot be read."""
    finish_reason: str = ""
    is_garbled: bool = False
    usage: Usage | None = None


class Words(msgspec.Struct, gc=False):
    """The message of a whole answer."""

    content: Any = None
    reasoning_content: Any = None
    reasoning: Any = None
    tool_calls: Any = None
    function_call: Any = None
    refusal: Any = None


class WholeChoice(msgspec.Struct, gc=False):
    message: Words | None = None
    text: str | None = None
    finish_reason: str | None = None

    @property
    def has_part(self) -> bool:
        said = self.message
        if said is None:
            return bool(self.text)
        return any((said.content, said.reasoning_content, said.reasoning, said.tool_calls, said.function_call)) or bool(
            said.refusal
        )

    @property
    def words(self) -> str:
        said = self.text if self.message is None else self.message.content
        return said if isinstance(said, str) else ""


class CachedPart(msgspec.Struct, gc=False):
    cached_tokens: int | None = None


class UsageObject(msgspec.Struct, gc=False):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: CachedPart | None = None


class Whole(msgspec.Struct, gc=False):
    """An answer or an error, as far as it matters here."""

    choices: list[WholeChoice] = []
    data: list[Any] = []
    """Of embeddings."""
    usage: UsageObject | None = None
    error: Any = None


_whole = msgspec.json.Decoder(Whole)


def hear_body(heard: Heard, body: bytes) -> None:
    """Read a body that came whole: an answer, or an error."""
    try:
        whole = _whole.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return
    heard.is_done = True
    if whole.error:
        _hear_error(heard, whole.error)
    heard.parts = sum(choice.has_part for choice in whole.choices) + len(whole.data)
    if whole.choices:
        heard.finish_reason = whole.choices[0].finish_reason or ""
        heard.text = "".join(choice.words for choice in whole.choices)
    usage = whole.usage
    if usage is not None and usage.completion_tokens is not None:
        details = usage.prompt_tokens_details
        cached = details.cached_tokens if details is not None else 0
        heard.usage = Usage(usage.prompt_tokens or 0, cached or 0, usage.completion_tokens)


def hear_stream(heard: Heard, scan: AnswerScan) -> None:
    """Read what a stream came to."""
    heard.is_stream = True
    heard.is_done = scan.is_done
    heard.parts = scan.parts
    heard.is_garbled = scan.is_garbled
    heard.label = heard.label or scan.label
    heard.finish_reason = scan.finish_reason
    heard.usage = scan.usage
    if scan.error:
        data = scan.error.partition(b"data:")[2]
        heard.has_error = True
        hear_error_text(heard, data)
    if scan.kept is not None:
        try:
            heard.text = scan.text
        except msgspec.DecodeError:
            heard.text = None


def hear_error_text(heard: Heard, text: bytes) -> None:
    """The body of an error, or an event's data."""
    try:
        found = _whole.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return
    if found.error:
        _hear_error(heard, found.error)


def _hear_error(heard: Heard, error: Any) -> None:
    heard.has_error = True
    if isinstance(error, dict):
        code = error.get("code") or error.get("type") or ""
        heard.error_code = str(code)
    else:
        heard.error_code = "error"
