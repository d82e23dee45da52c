"""How fast one replica has been lately, in figures that can be held against its peers'.

    first byte:    seconds ÷ (prompt tokens queued before it, its own included + 512)
    whole answer:  seconds ÷ (output tokens + prompt tokens ÷ 32 + 32)

Raw seconds say more about the request than about the replica: prompts and answers differ by a factor of a hundred.
The constants stand for what every answer costs, however short, and engines read at least 32 times as fast as they
write: a replica that gets long prompts with short answers is not slow for it. A window is closed when it has enough
samples; its medians are what is compared, because a median does not move for one odd request.
"""

from __future__ import annotations

from statistics import median

EACH_PROMPT_TOKENS = 512
EACH_OUTPUT_TOKENS = 32
READ_PER_WRITTEN = 32
MOST_SAMPLES = 64
"""Of one window; more would only make the median dearer."""
FRESH_S = 10.0
"""Older medians of peers say nothing of this moment."""
LEAST_FIRST_S = 0.1
LEAST_WHOLE_S = 0.5
"""Of a prompt of 512 tokens, and of an answer of 68: who is faster is not slow, however fast its peers are."""
SLOW_PROBE = 3.0
"""A probe that takes more than this multiple of its peers' medians is no good probe."""


class Pace:
    """The running window, and the medians of the last closed one."""

    __slots__ = ("_first", "_whole", "first_at", "first_s", "peers", "whole_at", "whole_s")

    def __init__(self) -> None:
        self._first: list[float] = []
        self._whole: list[float] = []
        self.first_s = self.whole_s = 0.0
        """Median seconds per token of the last closed windows; 0.0 before there was one."""
        self.first_at = self.whole_at = 0.0
        """When those windows were closed."""
        self.peers: tuple[Pace, ...] = ()
        """Of the other replicas of its model."""

    def note_first(self, pending_tokens: int, seconds: float) -> None:
        """A first byte came."""
        if len(self._first) < MOST_SAMPLES:
            self._first.append(seconds / (pending_tokens + EACH_PROMPT_TOKENS))

    def note_whole(self, prompt_tokens: int, output_tokens: int, seconds: float) -> None:
        """An answer ended well."""
        if len(self._whole) < MOST_SAMPLES:
            self._whole.append(_whole_pace(prompt_tokens, output_tokens, seconds))

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

    def first_ratio(self, per_token_s: float, now: float) -> float:
        """How many times its peers' median a first byte took; 0.0 where nothing can be compared, or it was fast."""
        peers = [each.first_s for each in self.peers if 0.0 < each.first_at > now - FRESH_S]
        return _ratio(per_token_s, peers, LEAST_FIRST_S / (2 * EACH_PROMPT_TOKENS))

    def whole_ratio(self, per_token_s: float, now: float) -> float:
        """The same of a whole answer."""
        peers = [each.whole_s for each in self.peers if 0.0 < each.whole_at > now - FRESH_S]
        return _ratio(per_token_s, peers, LEAST_WHOLE_S / (68 + EACH_OUTPUT_TOKENS))

    def slowness(self, now: float) -> float:
        """The larger of both, of the windows that were closed just now."""
        first = self.first_ratio(self.first_s, now) if self.first_at == now else 0.0
        return max(first, self.whole_ratio(self.whole_s, now) if self.whole_at == now else 0.0)

    def is_slow_first(self, pending_tokens: int, seconds: float, now: float) -> bool:
        """The first byte of a probe was no good one."""
        return self.first_ratio(seconds / (pending_tokens + EACH_PROMPT_TOKENS), now) > SLOW_PROBE

    def is_slow_whole(self, prompt_tokens: int, output_tokens: int, seconds: float, now: float) -> bool:
        """The answer to a probe was no good one."""
        return self.whole_ratio(_whole_pace(prompt_tokens, output_tokens, seconds), now) > SLOW_PROBE

    def forget(self) -> None:
        """It was away, or has started anew: what was measured before says nothing."""
        self._first.clear()
        self._whole.clear()
        self.first_at = self.whole_at = 0.0


def _whole_pace(prompt_tokens: int, output_tokens: int, seconds: float) -> float:
    return seconds / (output_tokens + prompt_tokens / READ_PER_WRITTEN + EACH_OUTPUT_TOKENS)


def _ratio(own_s: float, peers_s: list[float], least_s: float) -> float:
    return own_s / max(median(peers_s), 1e-9) if peers_s and own_s > least_s else 0.0
