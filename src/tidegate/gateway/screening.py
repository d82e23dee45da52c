"""Looks at a request's body for what no engine should be given (``policy.abnormal``)."""

from __future__ import annotations

from math import isfinite

from tidegate.policy.abnormal import (
    Handling,
    InputConfig,
    breaks_json,
    has_control,
    has_nul,
    period_of,
)
from tidegate.wire.body import Body
from tidegate.wire.errors import Mistake
from tidegate.wire.fields import Fields
from tidegate.wire.message_roles import roles_problem
from tidegate.wire.prompt_text import is_blank

REPETITIVE = Mistake.REPETITIVE_INPUT.value
"""The mark on a request whose prompt is passed on though it repeats itself."""


class AbnormalError(ValueError):
    """The request is refused: ``mistake``, with the words of the message, about the field ``param``."""

    def __init__(self, mistake: Mistake, detail: str, param: str | None = None) -> None:
        super().__init__(detail)
        self.mistake = mistake
        self.detail = detail
        self.param = param


class Screening:
    """Under one configuration; each attribute is looked up for every request."""

    __slots__ = (
        "_bars_control",
        "_bars_empty",
        "_bars_invalid",
        "_bars_repetitive",
        "_least_bytes",
        "_most_bytes",
        "_sees_repetitive",
        "is_on",
    )

    def __init__(self, config: InputConfig) -> None:
        self.is_on = config.enabled
        self._bars_empty = config.empty is Handling.REJECT
        self._bars_invalid = config.invalid_chars is Handling.REJECT
        self._bars_control = config.control_chars is Handling.REJECT
        self._bars_repetitive = config.repetitive is Handling.REJECT
        self._sees_repetitive = config.repetitive is not Handling.PASS
        self._least_bytes = config.repetitive_bytes
        self._most_bytes = config.scan_bytes

    def look(self, body: Body) -> str:
        """The mark on the request, or "". Raises ``AbnormalError``."""
        text, fields = body.text, body.fields
        # Searching for bytes is a tenth of the price of searching for a pattern.
        if self._bars_invalid and text.find(rb"\u0000", 0, self._most_bytes) >= 0 and has_nul(text, self._most_bytes):
            raise AbnormalError(Mistake.INVALID_CHARS, "it holds the character NUL (\\u0000)")
        if self._bars_control and has_control(text, self._most_bytes):
            raise AbnormalError(
                Mistake.INVALID_CHARS, "it holds a control character that is neither tab nor line break"
            )
        if self._bars_empty and _says_nothing(body):
            raise AbnormalError(Mistake.EMPTY_INPUT, "give a message or a prompt that says something")
        if fields.messages and (problem := roles_problem(bytes(fields.messages))):
            raise AbnormalError(Mistake.BAD_FIELD, f"each message needs a role: {problem}", "messages")
        _check_numbers(fields)
        if self._sees_repetitive and body.text_bytes >= self._least_bytes:
            return self._repetitive(fields)
        return ""

    def words_for(self, text: bytes, problem: str) -> AbnormalError:
        """Why a body is no JSON."""
        if self.is_on and breaks_json(text, self._most_bytes):
            return AbnormalError(Mistake.INVALID_CHARS, f"the body is no JSON because of a character in it: {problem}")
        return AbnormalError(Mistake.BAD_JSON, problem)

    def _repetitive(self, fields: Fields) -> str:
        raw = bytes(fields.messages) or bytes(fields.prompt) or bytes(fields.input)
        period = period_of(raw, self._least_bytes)
        if not period:
            return ""
        if self._bars_repetitive:
            raise AbnormalError(Mistake.REPETITIVE_INPUT, f"a part of {period} bytes stands in it again and again")
        return REPETITIVE


def _says_nothing(body: Body) -> bool:
    fields = body.fields
    if body.images:
        return False
    # vLLM takes embeddings in the place of a prompt.
    is_empty = is_blank(bytes(fields.messages), bytes(fields.prompt) or bytes(fields.input))
    return is_empty and b'"prompt_embeds"' not in body.text


def _check_numbers(fields: Fields) -> None:
    """Raises ``AbnormalError`` for what some engines answer with 500, or take for something else."""
    for name, wanted in (("n", fields.n), ("best_of", fields.best_of)):
        if wanted is not None and wanted < 1:
            raise AbnormalError(Mistake.BAD_FIELD, "at least 1 answer", name)
    for name, bound in (("max_tokens", fields.max_tokens), ("max_completion_tokens", fields.max_completion_tokens)):
        # llama.cpp's clients write -1 for "no bound".
        if bound is not None and bound < -1:
            raise AbnormalError(Mistake.BAD_FIELD, f"a number of tokens is not negative, got {bound}", name)
    for name, raw in (("temperature", fields.temperature), ("top_p", fields.top_p)):
        if raw:
            _check_number(name, bytes(raw))


def _check_number(name: str, raw: bytes) -> None:
    try:
        value = float(raw)
    except ValueError:
        return  # null, or of another type: the engine says what it takes
    if not isfinite(value) or value < 0:
        raise AbnormalError(Mistake.BAD_FIELD, "a number from 0 on that can be counted with", name)
