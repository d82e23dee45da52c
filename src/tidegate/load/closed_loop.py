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
TOLD_TO_WAIT_S = 10.0
"""At most: a user who was refused comes back when Retry-After says, as SDKs do."""
NOT_TOLD_S = 1.0
"""After a refusal that does not say when."""


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

    @property
    def overdue(self) -> int:
        """A user who is free asks at once."""
        return 0

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
        try:
            has_asked = self._has_asked()
        except Exception as error:  # noqa: BLE001 - an ask that cannot be made ends the phase, not the process
            self._fail(error)
            return
        self._users -= not has_asked
        if self._users <= 0 and not self._over.done():
            self._over.set_result(None)

    def _has_asked(self) -> bool:
        due_at = self._clock()
        is_open = not self._is_stopped and due_at < self._ends_at
        flight = (self._next or self._prepared()) if is_open else None
        if flight is None:
            return False
        self._dispatch.send(flight, due_at, self._take)
        # After sending: the user after this one finds its request ready.
        self._next = self._prepared()
        return True

    def _prepared(self) -> Flight | None:
        if self._left is not None:
            if self._left <= 0:
                return None
            self._left -= 1
        ask = next(self._asks, None)
        return None if ask is None else self._dispatch.prepare(ask)

    def _take(self, sample: Sample) -> None:
        try:
            self._sink(sample)
        except Exception as error:  # noqa: BLE001 - it belongs to who plays, not to the connection that brought it
            self._fail(error)
        loop = asyncio.get_running_loop()
        pause_s = min(_pause_s(sample), self._ends_at - self._clock())
        if pause_s > 0 and self._next is not None:
            loop.call_later(pause_s, self._ask)
        else:
            # In a turn of its own, so that this answer's connection is free by then.
            loop.call_soon(self._ask)

    def _fail(self, error: Exception) -> None:
        self._is_stopped = True
        if not self._over.done():
            self._over.set_exception(error)


def _pause_s(sample: Sample) -> float:
    """Before the user asks again."""
    if sample.outcome in NO_CONNECTION:
        return AGAIN_AFTER_S
    if sample.outcome is not ClientOutcome.SHED:
        return 0.0
    return min(TOLD_TO_WAIT_S, max(AGAIN_AFTER_S, sample.retry_after_s or NOT_TOLD_S))
