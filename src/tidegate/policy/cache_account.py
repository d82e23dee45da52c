"""What is believed of one replica's prefix cache: how far back it reaches, and whether it does what we expect of it.

Where an engine tells what it found in its cache (vLLM does), that is set against what we had expected it to find, so
that of an engine that caches nothing, or whose cache others fill, less is believed until nothing is.
"""

from __future__ import annotations

from tidegate.policy.reading import Reading

FEW_TOKENS = 4096
"""Expected hits before they are set against the engine's own count: those of a prompt or two may still wait there."""
LEARNING_RATE = 0.3


class CacheAccount:
    __slots__ = ("_expected_tokens", "_found_tokens", "_since", "is_told", "read_tokens", "trust")

    def __init__(self) -> None:
        self.read_tokens = 0
        """Prompt tokens that it was given to compute; the age of what it holds is counted in them."""
        self.trust = 1.0
        """Share of the expected hits that the engine finds, at most 1; 1.0 where it does not tell."""
        self.is_told = False
        """The engine says what it finds. Of one that does not, hits are hoped for in the choice, but not counted
        on in the work that it has before it."""
        self._since = 0
        """What it read before this count is gone."""
        self._expected_tokens = 0
        self._found_tokens: int | None = None

    def holds(self, read_at: int, kv_tokens: int | None) -> bool:
        """Whether what it was given when ``read_tokens`` stood there can still be in a cache of ``kv_tokens``."""
        return read_at > self._since and (kv_tokens is None or self.read_tokens - read_at < kv_tokens)

    def read(self, prompt_tokens: int, cached_tokens: int, believed_tokens: int) -> None:
        """It is given a prompt: so much of it is in our account, and so much of that is believed."""
        self.read_tokens += prompt_tokens - believed_tokens
        self._expected_tokens += cached_tokens

    def observe(self, before: Reading | None, reading: Reading) -> None:
        """An engine that was away, or counts anew, has an empty cache."""
        if not reading.ready or (before is not None and reading.counts_anew(before)):
            self._since, self._expected_tokens, self._found_tokens = self.read_tokens, 0, None
            return
        found, known = reading.prefix_found_tokens, self._found_tokens
        self.is_told = found is not None
        if found is None:
            return
        if known is None:
            self._expected_tokens, self._found_tokens = 0, found
        elif self._expected_tokens >= FEW_TOKENS:
            share = min(1.0, (found - known) / self._expected_tokens)
            self.trust += LEARNING_RATE * (share - self.trust)
            self._expected_tokens, self._found_tokens = 0, found
