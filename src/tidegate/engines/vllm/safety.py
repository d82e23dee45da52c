"""The banker's check (Dijkstra, EWD 108, 1965; Habermann, CACM 12(7), 1969) for one resource, KV blocks."""

from __future__ import annotations

from collections.abc import Iterable


def is_safe(sequences: Iterable[tuple[int, int]], free_blocks: int) -> bool:
    """Whether all can run to their ends, one after the other if need be, without a preemption.

    Each sequence is (blocks held, blocks held at its longest). The least wanting first is enough to try:
    whoever can end then gives back what it holds, so no other order does better. Sequences that share blocks
    are counted as if each had its own, which is never better than the truth: the real pool has at least as
    many free blocks, and a sequence that leaves shared blocks behind had taken none for them.
    """
    for held, most in sorted(sequences, key=_wanting):
        if most - held > free_blocks:
            return False
        free_blocks += held
    return True


def _wanting(sequence: tuple[int, int]) -> int:
    held, most = sequence
    return most - held
