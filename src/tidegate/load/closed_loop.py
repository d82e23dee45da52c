"""Users that each wait for an answer before they ask again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

from tidegate.load.ask import Ask
from tidegate.load.client_outcome import ClientOutcome
from tidegate.load.flight import Flight
from tidegate.load.open_loop import Dispatch
from tidegate.load.sample import Sample

AGAIN_AFTER_S = 0.1
"""A user that got no connection waits so long: else a dead service would be asked as fast as this machine can."""
NO_CONNECTION = frozenset({ClientOutcome.REFUSED, ClientOutcome.UNSENT})


class ClosedLoop:
    """Such a loop asks less of a service that is slow: its figures say nothing about a load that does not wait."""

    def __init__(
        self,
        dispatch: Dispatch,
        asks: Iterator[Ask],
        users: int,
        until: tuple[float, int | None],
        sink: Callable[[Sample], None],
        clock: Callable[[], float],
    ) -> None:
        """``until``: after how many seconds nobody asks again, and after how many asks."""
        self._dispatch = dispatch
        self._asks = asks
        self._users = users
        self._duration_s, self._left = until
        self._sink = sink
        self._clock = clock
        self._ends_at = 0.0
        self._next: Flight | None = None
        self._is_stopped = False
        self._over: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def play(self) -> None:
        """Returns when the last answer has come."""
        self._ends_at = self._clock() + self._duration_s
        for _ in range(self._users):
            self._ask()
        await self._over

    def stop(self) -> None:
        """Nobody asks again."""
        self._is_stopped = True

    def _ask(self) -> None:
        """One user is free: it asks, or goes for good."""
        due_at = self._clock()
        is_open = not self._is_stopped and due_at < self._ends_at
        flight = (self._next or self._prepared()) if is_open else None
        if flight is None:
            self._users -= 1
            if self._users <= 0 and not self._over.done():
                self._over.set_result(None)
            return
        self._next = None
        self._dispatch.send(flight, due_at, self._take)
        # After sending: the user after this one finds its request ready.
        self._next = self._prepared()

    def _prepared(self) -> Flight | None:
        if self._left is not None:
            if self._left <= 0:
                return None
            self._left -= 1
        ask = next(self._asks, None)
        return None if ask is None else self._dispatch.prepare(ask)

    def _take(self, sample: Sample) -> None:
        self._sink(sample)
        loop = asyncio.get_running_loop()
        if sample.outcome in NO_CONNECTION:
            loop.call_later(AGAIN_AFTER_S, self._ask)
        else:
            # In a turn of its own, so that this answer's connection is free by then.
            loop.call_soon(self._ask)
