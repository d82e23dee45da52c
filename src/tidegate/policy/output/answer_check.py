"""One answer, of one choice or several: what is wrong with it, if anything.

empty      no choice, or one without text, tool call and refusal, that ended by itself. Not where the request
           has stop sequences or wants no tokens: there nothing can be the right answer.
truncated  ended by its bound (``length``): a note, since the client may have wanted no more. Of a stream also:
           no ``finish_reason`` and no ``[DONE]``.
the rest   ``text_check``, of the first four choices.

Reasoning that is sent apart counts as no answer: a model that thinks until its bound is truncated, one that
thinks and then says nothing is empty.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tidegate.policy.output.output_config import OutputConfig
from tidegate.policy.output.problem import Finding, Problem
from tidegate.policy.output.text_check import TextCheck

MOST_CHOICES = 4
"""Whose text is looked at: a client may ask for 128, and each keeps its tail."""

FILTERED = "content_filter"


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What an answer should be, by its model and by its request."""

    config: OutputConfig
    is_json: bool = False
    schema: Any = None
    """JSON Schema that it must fit; None: any value."""
    may_be_empty: bool = False
    """Nothing can be the right answer to this request."""


class Choice:
    """What is known of one choice."""

    __slots__ = ("has_other", "reason", "text")

    def __init__(self, text: TextCheck | None) -> None:
        self.text = text
        """None: one of too many."""
        self.has_other = False
        """A tool call, a refusal, or text that is not looked at."""
        self.reason: str | None = None
        """Its ``finish_reason``; None until it has ended."""


class AnswerCheck:
    """Fed by choice, in any pieces."""

    __slots__ = ("_choices", "_expected", "finding")

    def __init__(self, expected: Expected) -> None:
        self._expected = expected
        self._choices: dict[int, Choice] = {}
        self.finding: Finding | None = None
        """The first problem."""

    def text(self, index: int, text: str) -> None:
        """A choice goes on by ``text``."""
        choice = self.choice(index)
        check = choice.text
        if check is None:
            choice.has_other = choice.has_other or not text.isspace()
        elif self.finding is None:
            check.feed(text)
            self.finding = check.finding

    def choice(self, index: int) -> Choice:
        """What is known of it; it begins if it has not."""
        found = self._choices.get(index)
        if found is None:
            check = None
            if len(self._choices) < MOST_CHOICES:
                expected = self._expected
                check = TextCheck(expected.config, is_json=expected.is_json, schema=expected.schema)
            found = self._choices[index] = Choice(check)
        return found

    def unreadable(self) -> None:
        """A part of the answer is no JSON, or no UTF-8."""
        if self.finding is None:
            self.finding = Finding(Problem.GARBLED, "a part of the answer is no JSON in UTF-8")

    def end(self, *, is_done: bool) -> Finding | None:
        """The answer is over. ``is_done``: it says so, as a whole answer does by being whole, and a stream by
        ``[DONE]``."""
        if self.finding is None:
            self.finding = self._at_end(is_done)
        return self.finding

    def _at_end(self, is_done: bool) -> Finding | None:
        choices = self._choices.values()
        if not is_done and not any(choice.reason is not None for choice in choices):
            return Finding(
                Problem.TRUNCATED, "the stream ended without saying so, by finish_reason or by its last event"
            )
        for choice in choices:
            found = self._of_choice(choice)
            if found is not None:
                return found
        if not choices and not self._expected.may_be_empty:
            return Finding(Problem.EMPTY, "the answer has no choice")
        return None

    def _of_choice(self, choice: Choice) -> Finding | None:
        check = choice.text
        found = None if check is None else check.end()
        if found is not None:
            return found
        if choice.reason == "length":
            return Finding(Problem.TRUNCATED, "the answer reached its token bound", is_bound=True)
        is_empty = not choice.has_other and (check is None or check.is_blank)
        if is_empty and choice.reason != FILTERED and not self._expected.may_be_empty:
            return Finding(Problem.EMPTY, "the answer has no text, no tool call and no refusal")
        return None
