"""When clients leave: one timer for all of them."""

from __future__ import annotations

from collections.abc import Callable

from tidegate.load.flight import Flight

TICK_S = 0.05
"""So much later than it says a client may leave."""


class PatienceWheel:
    """A timer for each request would cost as much as sending it."""

    __slots__ = ("_leave", "_next", "_ticks")

    def __init__(self, leave: Callable[[Flight], None]) -> None:
        """``leave`` gets each request whose time is over."""
        self._leave = leave
        self._ticks: dict[int, set[Flight]] = {}
        self._next = -1

    def add(self, flight: Flight) -> None:
        self._ticks.setdefault(self._tick_of(flight), set()).add(flight)

    def remove(self, flight: Flight) -> None:
        waiting = self._ticks.get(self._tick_of(flight))
        if waiting is not None:
            waiting.discard(flight)

    def turn(self, now: float) -> None:
        """Let go whose time is over by ``now``."""
        last = int(now / TICK_S)
        if self._next < 0:
            self._next = last
        for tick in range(self._next, last + 1):
            for flight in self._ticks.pop(tick, ()):
                self._leave(flight)
        self._next = last + 1

    @staticmethod
    def _tick_of(flight: Flight) -> int:
        return int((flight.sent_at + flight.ask.patience_s) / TICK_S) + 1
