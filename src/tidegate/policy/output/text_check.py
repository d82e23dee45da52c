"""One text as it comes: looked at where it has grown by 512 characters, and at its end.

The places depend on the text alone, so a finding does not depend on how the text was cut into chunks. What
is kept of it is its tail (what a loop is looked for in), and the whole only where a schema waits for it.
"""

from __future__ import annotations

import json
from typing import Any

from tidegate.policy.output.garble import Garble
from tidegate.policy.output.json_progress import JsonProgress
from tidegate.policy.output.output_config import OutputConfig
from tidegate.policy.output.problem import Finding, Problem
from tidegate.policy.output.repetition import EVERY, Repetition
from tidegate.policy.output.schema import misfit

MOST_KEPT = 65536
"""Characters of a text that a schema waits for; of a longer one only the form is checked."""

_FORMAT, _TRUNCATED, _EMPTY = Problem.FORMAT, Problem.TRUNCATED, Problem.EMPTY


class TextCheck:
    """Of one choice of an answer. ``schema``: a JSON Schema, or None."""

    __slots__ = (
        "_block",
        "_garble",
        "_json",
        "_kept",
        "_kept_size",
        "_repetition",
        "_schema",
        "_tail",
        "finding",
        "is_blank",
    )

    def __init__(self, config: OutputConfig, *, is_json: bool, schema: Any = None) -> None:
        self._repetition = Repetition(config.loop_characters, config.loop_repeats)
        self._garble = Garble(config.garbled_share)
        self._json = JsonProgress() if is_json else None
        self._schema = schema
        self._kept: list[str] = []
        self._kept_size = 0
        self._block = ""
        """What came since the last look."""
        self._tail = ""
        self.finding: Finding | None = None
        """The first problem; nothing more is looked at after it."""
        self.is_blank = True
        """Nothing but white space has come."""

    def feed(self, text: str) -> None:
        """Take the next piece."""
        if not text or self.finding:
            return
        if self.is_blank and not text.isspace():
            self.is_blank = False
        at = 0
        while at < len(text) and not self.finding:
            piece = text[at : at + EVERY - len(self._block)]
            at += len(piece)
            self._take(piece)

    def end(self) -> Finding | None:
        """The text is over."""
        if self.finding is None and self._block:
            self._look()
        if self.finding is None and self._json is not None and not self.is_blank:
            self._judge_json(self._json)
        return self.finding

    def _take(self, piece: str) -> None:
        """``piece`` reaches at most to the next place to look at."""
        if self._json is not None:
            self._json.feed(piece)
            if self._json.is_broken:
                self.finding = Finding(_FORMAT, f"JSON was asked for: {self._json.why}")
                return
        if self._schema is not None and self._kept_size <= MOST_KEPT:
            self._kept.append(piece)
            self._kept_size += len(piece)
        self._block += piece
        if len(self._block) == EVERY:
            self._look()

    def _look(self) -> None:
        block, self._block = self._block, ""
        self._tail = (self._tail + block)[-self._repetition.window :]
        if self._garble.check(block):
            self.finding = Finding(Problem.GARBLED, self._garble.evidence)
        elif self._repetition.check(self._tail):
            self.finding = Finding(Problem.REPETITIVE, self._repetition.evidence)

    def _judge_json(self, progress: JsonProgress) -> None:
        if not progress.is_complete:
            self.finding = Finding(_TRUNCATED, "JSON was asked for, and it ends before its value is complete")
        elif self._schema is not None and self._kept_size <= MOST_KEPT:
            try:
                value = json.loads("".join(self._kept))
            except ValueError:
                return  # a number of thousands of digits, which Python does not read
            why = misfit(value, self._schema)
            if why:
                self.finding = Finding(_FORMAT, f"the JSON does not fit its schema: {why}")
