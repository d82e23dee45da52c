"""How vLLM lays the KV of a model in blocks on one GPU, and how many sequences that holds.

Read from vLLM 0.32 (``vllm/v1/core/kv_cache_utils.py``), which a live test compares on real configurations:

- Layers that look back equally far form a kind. All layers of one kind: one group, one block table.
- Several kinds: groups of as many layers as the smallest kind has (or the largest, if that is less than 1.5 times as
  many), so that one block of any group is of one size; the last group of a kind may be padded.
- A sequence takes whole blocks in every group: its length in a full group, in a sliding one at most
  window - 1 + the tokens in flight, and one block more, as a window seldom begins at a block.
- The pool keeps one block, the null block, for itself.

Tokens in flight are those of the steps that overlap (two, or one more than the pipeline stages) at the full
--max-num-batched-tokens each. Earlier vLLM reserved for one step only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil

from tidegate.plan.layers import Layers

BLOCK_TOKENS = 16
"""vLLM's default on CUDA."""
PAD_BELOW = 1.5


@dataclass(frozen=True, slots=True)
class Group:
    """Layers that share a block table."""

    block_tokens: int
    window_tokens: int | None = None

    def blocks(self, tokens: int, in_flight_tokens: int) -> int:
        """Blocks of one sequence of ``tokens``, at most."""
        if self.window_tokens is None:
            return -(-tokens // self.block_tokens)
        held = min(self.window_tokens - 1 + in_flight_tokens, tokens)
        return -(-held // self.block_tokens) + 1


@dataclass(frozen=True, slots=True)
class Paging:
    """KV blocks of one GPU."""

    block_bytes: int
    """Of all layers of one group together."""
    groups: tuple[Group, ...]
    in_flight_tokens: int

    def blocks_of_sequence(self, tokens: int) -> int:
        return sum(group.blocks(tokens, self.in_flight_tokens) for group in self.groups)

    def sequence_bytes(self, tokens: int) -> int:
        """KV memory that one sequence of ``tokens`` takes."""
        return self.blocks_of_sequence(tokens) * self.block_bytes

    def blocks_in(self, pool_bytes: int) -> int:
        return max(0, pool_bytes) // self.block_bytes

    def sequences_in(self, pool_bytes: int, tokens: int) -> int:
        """How many sequences of ``tokens`` are held beside each other, whatever they share."""
        return max(0, self.blocks_in(pool_bytes) - 1) // self.blocks_of_sequence(tokens)

    def longest_in(self, pool_bytes: int, context_tokens: int) -> int:
        """The longest single sequence that fits, up to ``context_tokens``; 0 for none."""
        low, high = 0, context_tokens
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self.sequences_in(pool_bytes, middle) else (low, middle - 1)
        return low


def paging(
    layers: Sequence[Layers],
    bits: Fraction,
    *,
    tensor_parallel: int = 1,
    stages: int = 1,
    block_tokens: int = BLOCK_TOKENS,
    prefill_tokens: int = 2048,
) -> Paging:
    """Blocks of a model with these layers on one GPU of the fullest pipeline stage."""
    in_flight_tokens = prefill_tokens * (2 if stages == 1 else stages + 1)
    pages = {each: block_tokens * each.token_bytes(bits, tensor_parallel) for each in layers}
    kinds: Counter[int | None] = Counter()
    for each in layers:
        kinds[each.window_tokens] += each.count
    if len(kinds) == 1:
        (window,) = kinds
        block_bytes = sum(ceil(each.count / stages) * page for each, page in pages.items())
        return Paging(block_bytes, (Group(block_tokens, window),), in_flight_tokens)
    return _mixed(pages, block_tokens, stages, in_flight_tokens)


def _mixed(pages: dict[Layers, int], block_tokens: int, stages: int, in_flight_tokens: int) -> Paging:
    largest = max(pages.values())
    kinds: Counter[Group] = Counter()
    for each, page in pages.items():
        # A smaller page holds more tokens if it divides the largest, else it is padded.
        factor = largest // page if largest % page == 0 else 1
        kinds[Group(block_tokens * factor, each.window_tokens)] += each.count
    fewest, most = min(kinds.values()), max(kinds.values())
    size = most if most < fewest * PAD_BELOW else fewest
    groups = tuple(group for group, count in kinds.items() for _ in range(-(-count // size)))
    return Paging(ceil(size / stages) * largest, groups, in_flight_tokens)
