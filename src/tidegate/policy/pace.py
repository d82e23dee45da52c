"""How fast one replica has been lately, in figures that can be held against its peers'.

    first byte:    seconds ÷ (prompt tokens queued before it, its own included + 512)
    whole answer:  seconds ÷ (output tokens + 32)

Raw seconds say more about the request than about the replica: prompts and answers differ by a factor of a hundred.
The constants stand for what every answer costs, however short. A window is closed when it has enough samples; its
medians are what is compared, because a median does not move for one odd request.
"""

from __future__ import annotations

from statistics import median

EACH_PROMPT_TOKENS = 512
EACH_OUTPUT_TOKENS = 32
MOST_SAMPLES = 64
"""Of one window; more would only make the median dearer."""


class Pace:
    """The running window, and the medians of the last closed one."""

    __slots__ = ("_first", "_whole", "first_at", "first_s", "whole_at", "whole_s")

    def __init__(self) -> None:
        self._first: list[float] = []
        self._whole: list[float] = []
        self.first_s = self.whole_s = 0.0
        """Median seconds per token of the last closed windows; 0.0 before there was one."""
        self.first_at = self.whole_at = 0.0
        """When those windows were closed."""

    def note_first(self, pending_tokens: int, seconds: float) -> None:
        """A first byte came."""
        if len(self._first) < MOST_SAMPLES:
            self._first.append(seconds / (pending_tokens + EACH_PROMPT_TOKENS))

    def note_whole(self, output_tokens: int, seconds: float) -> None:
        """An answer ended well."""
        if len(self._whole) < MOST_SAMPLES:
            self._whole.append(seconds / (output_tokens + EACH_OUTPUT_TOKENS))

    def close(self, least: int, now: float) -> bool:
        """Close each window that has ``least`` samples. True: one was closed."""
        closed = False
        if len(self._first) >= least:
            self.first_s, self.first_at, closed = median(self._first), now, True
            self._first.clear()
        if len(self._whole) >= least:
            self.whole_s, self.whole_at, closed = median(self._whole), now, True
            self._whole.clear()
        return closed

    def forget(self) -> None:
        """It was away, or has started anew: what was measured before says nothing."""
        self._first.clear()
        self._whole.clear()
        self.first_at = self.whole_at = 0.0
