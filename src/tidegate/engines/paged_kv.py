"""A KV pool in blocks, shared by sequences that each grow by one token per step.

Sequences are not visited one by one. A sequence needs a new block exactly when its length is a
multiple of the block size, so it is enough to count how many sequences reach that point at each
step modulo the block size (their *phase*).
"""

from __future__ import annotations


class PagedKv:
    """Counts blocks. The caller names the step; one growth step adds one token to every grower."""

    def __init__(self, tokens: int, block_tokens: int) -> None:
        self.block_tokens = block_tokens
        self.blocks = tokens // block_tokens
        self.free = self.blocks
        self.total_tokens = self.blocks * block_tokens
        self._growing = 0
        self._phases = [0] * block_tokens

    @property
    def used_tokens(self) -> int:
        return (self.blocks - self.free) * self.block_tokens

    @property
    def largest_free_tokens(self) -> int:
        """All that is free: a page table makes any blocks one piece."""
        return self.free * self.block_tokens

    def blocks_for(self, tokens: int) -> int:
        return -(-tokens // self.block_tokens)

    def fits(self, tokens: int, step: int) -> bool:
        """Whether a sequence can come in beside what the growers take in ``step``."""
        return self.blocks_for(tokens) <= self.free - self.need(step)

    def is_torn(self, _tokens: int) -> bool:
        """Never: what is free in sum can be given out."""
        return False

    def take(self, _owner: int, tokens: int) -> None:
        self.free -= self.blocks_for(tokens)

    def give_back(self, _owner: int, tokens: int) -> None:
        """A sequence of ``tokens`` length leaves."""
        self.free += self.blocks_for(tokens)

    def is_short(self, step: int) -> bool:
        """The growers need more blocks in ``step`` than are free."""
        return self.need(step) > self.free

    def start_growing(self, tokens: int, step: int) -> None:
        """A sequence that holds ``tokens`` grows from ``step`` on."""
        self._growing += 1
        self._phases[(step - tokens) % self.block_tokens] += 1

    def stop_growing(self, tokens: int, step: int) -> None:
        """A sequence that holds ``tokens`` before ``step`` grows no more."""
        self._growing -= 1
        self._phases[(step - tokens) % self.block_tokens] -= 1

    def need(self, step: int) -> int:
        """Blocks that the growers take in ``step``."""
        return self._phases[step % self.block_tokens]

    def grow(self, step: int, steps: int) -> None:
        """Take the blocks of ``steps`` steps, the first of them ``step``."""
        cycles, rest = divmod(steps, self.block_tokens)
        taken = cycles * self._growing
        for offset in range(rest):
            taken += self._phases[(step + offset) % self.block_tokens]
        self.free -= taken

    def steps_until_short(self, step: int, horizon: int) -> int:
        """How many steps from ``step`` on the pool can serve, at most ``horizon``."""
        cycles = self.free // self._growing if self._growing else horizon
        steps = cycles * self.block_tokens
        if steps >= horizon:
            return horizon
        left = self.free - cycles * self._growing
        while steps < horizon and left >= self.need(step + steps):
            left -= self.need(step + steps)
            steps += 1
        return steps
