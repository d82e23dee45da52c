"""What a simulated engine still holds of earlier prompts, in blocks with an id each.

A block's id stands for itself and everything before it, as in vLLM's automatic prefix caching and in the ``hash_ids``
of Mooncake's traces. Blocks are forgotten least recently used first, when there are more than the KV pool has room
for. Simplified: the pool itself counts every sequence in full, shared blocks too, and answers are not cached.
"""

from __future__ import annotations


class PrefixCache:
    def __init__(self, blocks: int, block_tokens: int) -> None:
        self.asked_tokens = 0
        """Prompt tokens looked up."""
        self.found_tokens = 0
        self._most = blocks
        self._block_tokens = block_tokens
        self._held: dict[int, None] = {}

    def read(self, blocks: tuple[int, ...], prompt_tokens: int) -> int:
        """A prompt comes in; returns how many of its tokens need not be computed. At least one must."""
        hits = 0
        for block in blocks:
            if block not in self._held:
                break
            hits += 1
        for block in blocks:
            self._held.pop(block, None)
            self._held[block] = None
        while len(self._held) > self._most:
            del self._held[next(iter(self._held))]
        found = min(hits * self._block_tokens, prompt_tokens - 1)
        self.asked_tokens += prompt_tokens
        self.found_tokens += found
        return found
