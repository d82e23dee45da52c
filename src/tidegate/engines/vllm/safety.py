"""The banker's check (Dijkstra, EWD 108, 1965; Habermann, CACM 12(7), 1969) for one resource, KV blocks."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable

State = tuple[int, int]
"""Blocks that a sequence holds, and holds at its longest."""


class Holdings:
    """Whether all can run to their ends, one after the other if need be, without a preemption.

    The least wanting first is enough to try: whoever can end then gives back what it holds, so no other order does
    better. Sequences that share blocks are counted as if each had its own, which is never better than the truth: the
    real pool has at least as many free blocks, and a sequence that leaves shared blocks behind had taken none for them.
    """

    __slots__ = ("_wanting", "held")

    def __init__(self, states: Iterable[State]) -> None:
        self._wanting = sorted((most - held, held) for held, most in states)
        self.held = sum(held for _, held in self._wanting)

    def are_safe(self, pool_blocks: int) -> bool:
        return self._can_all_end(self._wanting, pool_blocks - self.held)

    def are_safe_with(self, state: State, pool_blocks: int) -> bool:
        """The same with one more."""
        held, most = state
        one = (most - held, held)
        at = bisect_left(self._wanting, one)
        everybody = [*self._wanting[:at], one, *self._wanting[at:]]
        return self._can_all_end(everybody, pool_blocks - self.held - held)

    @staticmethod
    def _can_all_end(wanting: list[tuple[int, int]], free_blocks: int) -> bool:
        if free_blocks < 0:
            return False
        for more, held in wanting:
            if more > free_blocks:
                return False
            free_blocks += held
        return True
