"""Virtual time: a heap of (time, sequence, action)."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any


class Clock:
    """Runs actions in order of time, those of one moment in the order in which they were asked for."""

    def __init__(self) -> None:
        self.now = 0.0
        """Seconds since the start of the run."""
        self.events = 0
        """Actions run so far."""
        self._heap: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []
        self._sequence = 0

    def schedule(self, at: float, action: Callable[..., None], *arguments: Any) -> None:
        """Call ``action(*arguments)`` at ``at``; a time that has passed means as soon as possible."""
        self._sequence += 1
        heappush(self._heap, (max(at, self.now), self._sequence, action, arguments))

    def run(self, until: float = float("inf")) -> None:
        """Run everything that is due at or before ``until``. Afterwards ``now`` is the last action's time."""
        heap = self._heap
        while heap and heap[0][0] <= until:
            self.now, _, action, arguments = heappop(heap)
            self.events += 1
            action(*arguments)
