"""Requests that are sent when they are due, whatever became of those before."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from typing import Protocol

from tidegate.load.alarm import alarm_for
from tidegate.load.ask import Ask
from tidegate.load.flight import Flight
from tidegate.load.sample import Sample

MADE_AHEAD = 128
"""Asks whose bytes are ready before they are due."""
MADE_FOR_S = 0.0005
"""So long requests are made at a stretch: answers that come in the meantime wait."""
MAKES_AGAIN_IN_S = 0.001
"""While too few are ready."""


class Dispatch(Protocol):
    """What the two loops need of a sender."""

    def prepare(self, ask: Ask) -> Flight:
        """Make its bytes."""

    def send(self, flight: Flight, due_at: float, on_sample: Callable[[Sample], None]) -> None: ...

    def drop(self, flight: Flight, due_at: float, on_sample: Callable[[Sample], None]) -> None:
        """It was due and is not sent any more."""


class OpenLoop:
    """``began``: the clock's time at which ``Ask.due_s`` is 0."""

    def __init__(
        self,
        dispatch: Dispatch,
        asks: Iterator[Ask],
        span: tuple[float, float],
        sink: Callable[[Sample], None],
        clock: Callable[[], float],
    ) -> None:
        """``span``: when it begins and for how many seconds it sends."""
        self._dispatch = dispatch
        self._asks = asks
        self._began, self._duration_s = span
        self._sink = sink
        self._clock = clock
        self._ready: deque[tuple[float, Flight]] = deque()
        self._has_more = True
        self._under_way = 0
        self._alarm = alarm_for(self._turn, clock)
        self._over: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @property
    def overdue(self) -> int:
        """Made, due, and not sent yet."""
        now = self._clock()
        return sum(due_at <= now for due_at, _ in self._ready)

    async def play(self) -> None:
        """Returns when the last answer has come."""
        try:
            self._make(self._began)
            self._turn()
            await self._over
        finally:
            self._alarm.close()

    def stop(self) -> None:
        """Send nothing more; what was due by now is told as unsent."""
        now = self._clock()
        self._has_more = False
        ready, self._ready = self._ready, deque()
        for due_at, flight in ready:
            if due_at <= now:
                self._under_way += 1
                self._dispatch.drop(flight, due_at, self._take)
        self._end_if_over()

    def _turn(self) -> None:
        try:
            self._send_due()
            self._make(self._clock() + MADE_FOR_S)
            # Making took time, in which another may have become due.
            self._send_due()
        except Exception as error:  # noqa: BLE001 - an ask that cannot be made ends the phase, not the process
            self._fail(error)
            return
        if self._ready or self._has_more:
            self._arm()
        self._end_if_over()

    def _send_due(self) -> None:
        ready, now = self._ready, self._clock()
        while ready and ready[0][0] <= now:
            due_at, flight = ready.popleft()
            self._under_way += 1
            self._dispatch.send(flight, due_at, self._take)

    def _make(self, until: float) -> None:
        """Have the next ones ready, but not for longer than ``until``, unless there would be none at all."""
        ready = self._ready
        while self._has_more and len(ready) < MADE_AHEAD:
            ask = next(self._asks, None)
            if ask is None or ask.due_s >= self._duration_s:
                self._has_more = False
                return
            ready.append((self._began + ask.due_s, self._dispatch.prepare(ask)))
            if self._clock() >= until:
                return

    def _arm(self) -> None:
        at = self._ready[0][0] if self._ready else 0.0
        if self._has_more and len(self._ready) < MADE_AHEAD // 2:
            soon = self._clock() + MAKES_AGAIN_IN_S
            at = min(at, soon) if self._ready else soon
        self._alarm.set(at)

    def _take(self, sample: Sample) -> None:
        self._under_way -= 1
        try:
            self._sink(sample)
        except Exception as error:  # noqa: BLE001 - it belongs to who plays, not to the connection that brought it
            self._fail(error)
        self._end_if_over()

    def _fail(self, error: Exception) -> None:
        self._has_more = False
        self._ready.clear()
        if not self._over.done():
            self._over.set_exception(error)

    def _end_if_over(self) -> None:
        if not (self._under_way or self._has_more or self._ready or self._over.done()):
            self._over.set_result(None)
