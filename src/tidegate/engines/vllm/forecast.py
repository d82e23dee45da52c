"""The peak test: how many blocks will be held at the worst moment to come.

Sequence j holds n_j tokens and is expected to write t_j more, one in each step. Before step t from now,

    S(t) = Σ_{j: t_j >= t} blocks(n_j + t - 1),

for the last token of an answer is never written. S grows between two ends, so its peak is at some t_j.
Admission by the peak instead of by the sum of all ends is the rule of the project's vLLM notes (§3, "peak");
the same idea with lengths drawn at random is the "future required memory" of LightLLM's Past-Future scheduler.
"""

from __future__ import annotations

from collections.abc import Iterable

from tidegate.engines.vllm.blocks import BlockLayout


class Forecast:
    """The future of a set of sequences, each given as (tokens expected to come, tokens there are)."""

    def __init__(self, layout: BlockLayout, sequences: Iterable[tuple[int, int]]) -> None:
        self._layout = layout
        self._longest_first = sorted(sequences, reverse=True)
        """By what is left; the first ends last."""
        self._block = block = layout.block_tokens
        self._held = self._held_anyhow() if block is None else self._held_in_plain_blocks(block)
        """Before each end, in the same order."""
        self.peak = max(self._held, default=0)

    def peak_with(self, left: int, tokens: int) -> int:
        """The peak if one more sequence began now. O(n)."""
        needed = self._needed
        peak = held_then = 0
        for (end, size), held in zip(self._longest_first, self._held, strict=True):
            peak = max(peak, held if end > left else held + needed(tokens + end - 1))
            if end >= left:
                held_then += needed(size + left - 1)
        return max(peak, held_then + needed(tokens + left - 1))

    def _needed(self, tokens: int) -> int:
        block = self._block
        return self._layout.needed(tokens) if block is None else -(-tokens // block)

    def _held_in_plain_blocks(self, block: int) -> list[int]:
        """S at each end, in O(n · log n) and slices of one block's length.

        With a = n - 1 and u = t - 1, blocks(n + t - 1) = a // B + u // B + 1 + [a mod B + u mod B >= B], so
        the sum needs only Σ a // B, a count, and how the a mod B are spread.
        """
        held: list[int] = []
        full_blocks = 0
        spread = [0] * block
        ends = self._longest_first
        for index, (end, tokens) in enumerate(ends):
            full, rest = divmod(tokens - 1, block)
            full_blocks += full
            spread[rest] += 1
            if index + 1 < len(ends) and ends[index + 1][0] == end:
                continue  # the others that end in this step are still to be counted
            later, past = divmod(end - 1, block)
            count = index + 1
            total = full_blocks + count * (later + 1) + (sum(spread[block - past :]) if past else 0)
            held += [total] * (count - len(held))
        return held

    def _held_anyhow(self) -> list[int]:
        """S at each end for any layout, in O(n²)."""
        needed, ends = self._layout.needed, self._longest_first
        held = []
        for end, _ in ends:
            held.append(sum(needed(tokens + end - 1) for left, tokens in ends if left >= end))
        return held
