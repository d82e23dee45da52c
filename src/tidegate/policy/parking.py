"""Which parked job is offered next: of the tenant that has fewest offered, the one that came first.

A job that was refused for want of room is parked until it may come back, and then goes before those of
its tenant that were never offered. One tenant with a thousand jobs delays another's first by no more
than one job.
"""

from __future__ import annotations

import heapq
from collections import Counter, deque
from itertools import count
from typing import Generic, TypeVar

Item = TypeVar("Item")


class Parking(Generic[Item]):
    """Items are compared by identity; each is parked at most once at a time."""

    __slots__ = ("_later", "_numbers", "_ready", "offered")

    def __init__(self) -> None:
        self._ready: dict[str, deque[Item]] = {}
        """By tenant, in the order in which they go; no tenant without one."""
        self._later: list[tuple[float, int, str, Item]] = []
        self._numbers = count()
        self.offered: Counter[str] = Counter()
        """By tenant, taken and not put back; the owner subtracts those that are over."""

    def __len__(self) -> int:
        return len(self._later) + sum(map(len, self._ready.values()))

    def park(self, tenant: str, item: Item) -> None:
        """Behind the others of its tenant."""
        self._ready.setdefault(tenant, deque()).append(item)

    def park_until(self, tenant: str, item: Item, due_at: float) -> None:
        """From ``due_at`` on, before the others of its tenant."""
        heapq.heappush(self._later, (due_at, next(self._numbers), tenant, item))

    def take(self, now: float) -> Item | None:
        """The next one, if there is one; it counts as offered."""
        while self._later and self._later[0][0] <= now:
            _, _, tenant, item = heapq.heappop(self._later)
            self._ready.setdefault(tenant, deque()).appendleft(item)
        if not self._ready:
            return None
        tenant = min(self._ready, key=self.offered.__getitem__)
        waiting = self._ready[tenant]
        item = waiting.popleft()
        if not waiting:
            del self._ready[tenant]
        self.offered[tenant] += 1
        return item

    def over(self, tenant: str) -> None:
        """One that was taken is offered no longer."""
        self.offered[tenant] -= 1
        if not self.offered[tenant]:
            del self.offered[tenant]

    def drop(self, tenant: str, item: Item) -> None:
        """It is no longer wanted. Raises ``ValueError`` when it is not parked."""
        waiting = self._ready.get(tenant)
        if waiting is not None and item in waiting:
            waiting.remove(item)
            if not waiting:
                del self._ready[tenant]
            return
        kept = [entry for entry in self._later if entry[3] is not item]
        if len(kept) == len(self._later):
            raise ValueError(f"tenant {tenant} has parked no such job")
        self._later = kept
        heapq.heapify(kept)
