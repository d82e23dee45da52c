"""Finds text that says the same over and over (SPEC S2-38, S1-78).

At every 512th character: is the tail, ``max(loop_characters, loop_repeats × p)`` long, equal to itself
moved by p characters, for any p up to 1024? Or is ``loop_characters ÷ 2`` of it nothing but white space?

Regimes: one character or token for ever (a NaN in the logits writes "!!!!"), a sentence, a paragraph, white
space in JSON mode. Only exact repetition counts: a model in a loop writes the very same, while tables, logs
and lists of like lines differ somewhere. Rules, table borders, indentation and padding are shorter.

Why this variant: an n-gram share needs tokens and counts words that a text is about; a compression ratio
calls every table a loop. Equality of two slices is one ``memcmp``, and says how long and of which period.
Where the checks fall depends on the text alone, so that the finding does not depend on how it was cut into
chunks. A loop is found at most 511 characters after it is long enough.
"""

from __future__ import annotations

LONGEST_PERIOD = 1024
EVERY = 512
"""Characters between two checks."""
_NEEDLES = (32, 128, 512)
"""Characters at the end that are looked for before it, to find a period to try. A longer one is taken where what the
shorter one found is no period: a rule inside a table that repeats has a period of its own."""


class Repetition:
    """Of one text. ``least`` characters and ``repeats``: see ``OutputConfig``."""

    __slots__ = ("_least", "_repeats", "_window", "period")

    def __init__(self, least: int, repeats: int) -> None:
        self._least = least
        self._repeats = repeats
        self._window = max(least, repeats * LONGEST_PERIOD)
        self.period = 0
        """Characters that stand behind themselves; 0: no loop yet. -1: white space."""

    @property
    def window(self) -> int:
        """Most characters of the tail that a check looks at."""
        return self._window

    def check(self, tail: str) -> bool:
        """Whether ``tail``, the end of the text so far, is a loop."""
        self.period = self._period(tail)
        return self.period != 0

    def _period(self, tail: str) -> int:
        size = len(tail)
        blank = self._least // 2
        if size >= blank and tail[-1].isspace() and tail[-blank:].isspace():
            return -1
        if size < self._least:
            return 0
        for needle in _NEEDLES:
            # Where nothing of the kind stands before it, the longer ones would find nothing either.
            at = tail.rfind(tail[-needle:], max(0, size - needle - LONGEST_PERIOD), size - 1)
            if at < 0:
                return 0
            period = size - needle - at
            wanted = max(self._least, self._repeats * period)
            if wanted <= size and tail[size - wanted : size - period] == tail[size - wanted + period :]:
                return period
        return 0

    @property
    def evidence(self) -> str:
        """The finding in words."""
        if self.period < 0:
            return f"nothing but white space for {self._least // 2} characters"
        return f"a part of {self.period} characters stands behind itself again and again"
