"""Requests that are sent when they are due, whatever became of those before."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from typing import Protocol

from tidegate.load.ask import Ask
from tidegate.load.flight import Flight
from tidegate.load.sample import Sample

MADE_AHEAD = 128
"""Asks whose bytes are ready before they are due."""
MADE_FOR_S = 0.0005
"""So long requests are made at a stretch: answers that come in the meantime wait."""
LEAST_WAIT_S = 0.001
"""uvloop's timers have whole milliseconds, and one of less would spin."""


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
        self._timer: asyncio.TimerHandle | None = None
        self._over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._make(self._began)

    async def play(self) -> None:
        """Returns when the last answer has come."""
        self._turn()
        try:
            await self._over
        finally:
            if self._timer is not None:
                self._timer.cancel()

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
        self._timer = None
        self._send_due()
        self._make(self._clock() + MADE_FOR_S)
        # Making took time, in which another may have become due.
        self._send_due()
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
        loop = asyncio.get_running_loop()
        wait_s = self._ready[0][0] - self._clock() if self._ready else 0.0
        if self._has_more and len(self._ready) < MADE_AHEAD // 2:
            wait_s = min(wait_s, LEAST_WAIT_S)
        self._timer = loop.call_later(max(LEAST_WAIT_S, wait_s), self._turn)

    def _take(self, sample: Sample) -> None:
        self._under_way -= 1
        self._sink(sample)
        self._end_if_over()

    def _end_if_over(self) -> None:
        if not (self._under_way or self._has_more or self._ready or self._over.done()):
            self._over.set_result(None)
