"""Sends asks to one target, over connections that it keeps."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator

from tidegate.load.ask import Ask
from tidegate.load.closed_loop import ClosedLoop
from tidegate.load.flight import Flight
from tidegate.load.gap_counts import GapCounts
from tidegate.load.heard import End
from tidegate.load.link_pool import Dial, LinkPool, dialer
from tidegate.load.open_loop import OpenLoop
from tidegate.load.patience_wheel import TICK_S, PatienceWheel
from tidegate.load.request_text import RequestText
from tidegate.load.sample import Sample
from tidegate.load.target import Target

GRACE_S = 5.0
"""After ``stop``: so long answers that are under way may still come."""
Sink = Callable[[Sample], None]


class Sender:
    """Use inside a running loop, and ``close`` it. Times in samples are ``time.monotonic() - clock_zero``.

    A request that meets a connection which the server closed while it was idle is sent again, once, over a new one; it
    stays one sample. Everything else that goes wrong is told as it went.
    """

    def __init__(
        self,
        target: Target,
        clock_zero: float,
        *,
        worker: int = 0,
        grace_s: float = GRACE_S,
        clock: Callable[[], float] = time.monotonic,
        dial: Dial | None = None,
    ) -> None:
        """Raises ``ConfigError`` for a URL that is none and for a ``ca_file`` that cannot be used."""
        self.target = target
        self._zero = clock_zero
        self._worker = worker
        self._grace_s = grace_s
        self._clock = clock
        self._text = RequestText(target)
        self._pool = LinkPool(dial or dialer(self._text, target.ca_file), clock)
        self._wheel = PatienceWheel(self._leave)
        self._loops: set[OpenLoop | ClosedLoop] = set()
        self._under_way: set[Flight] = set()
        self._ticking: asyncio.TimerHandle | None = None
        self._tick_at = 0.0
        self._stopping: asyncio.TimerHandle | None = None
        self.sent = 0
        self.gaps = GapCounts()
        """Between reads with a part of an answer, of all that was sent; see ``Played``."""
        self.token_gaps = GapCounts()
        self.wake_lags_s: list[float] = []
        """How late each tick came, while something was under way."""

    @property
    def in_flight(self) -> int:
        """Sent, and not over."""
        return len(self._under_way)

    @property
    def overdue(self) -> int:
        """Due, and not sent yet."""
        return sum(loop.overdue for loop in self._loops)

    async def ask(self, ask: Ask, phase: str = "") -> Sample:
        """Send one request now, and wait for its end."""
        found: list[Sample] = []
        await self.closed_loop(iter((ask,)), 1, float("inf"), 1, found.append, phase)
        return found[0]

    async def open_loop(
        self, asks: Iterator[Ask], began: float, duration_s: float, sink: Sink, phase: str = ""
    ) -> None:
        """Send each ask at ``began + ask.due_s`` of the clock; asks that are due at ``duration_s`` or later are not
        sent. Returns when the last answer has come."""
        await self._play(OpenLoop(self, asks, (began, duration_s), self._labelled(sink, phase), self._clock))

    async def closed_loop(
        self,
        asks: Iterator[Ask],
        users: int,
        duration_s: float,
        count: int | None,
        sink: Sink,
        phase: str = "",
    ) -> None:
        """``users`` ask, each again when it was answered, until ``count`` asks were sent or ``duration_s`` is over.
        Returns when the last answer has come."""
        until = (duration_s, count)
        await self._play(ClosedLoop(self, asks, users, until, self._labelled(sink, phase), self._clock))

    def stop(self) -> None:
        """End all loops early: what was due and is not sent is UNSENT; what is under way has ``grace_s`` to come, and
        is then a TIMEOUT with the code ``run_ended``."""
        for loop in tuple(self._loops):
            loop.stop()
        if self._stopping is None and self._under_way:
            self._stopping = asyncio.get_running_loop().call_later(self._grace_s, self._end_all)

    async def close(self) -> None:
        """End every connection."""
        self.stop()
        self._end_all()
        if self._ticking is not None:
            self._ticking.cancel()
        await self._pool.close()

    def prepare(self, ask: Ask) -> Flight:
        """Make its bytes, for ``send``."""
        return Flight(ask, self._text.of(ask), (self.gaps, self.token_gaps))

    def send(self, flight: Flight, due_at: float, on_sample: Sink) -> None:
        self.sent += 1
        flight.due_at = due_at
        flight.sent_at = self._clock()
        flight.on_end = lambda flight, end, problem: self._finish(flight, (end, problem), on_sample)
        self._under_way.add(flight)
        self._wheel.add(flight)
        if self._ticking is None:
            self._tick_again(flight.sent_at)
        self._pool.send(flight)

    def drop(self, flight: Flight, due_at: float, on_sample: Sink) -> None:
        """Tell it as unsent."""
        flight.due_at = due_at
        self._tell(flight, (End.UNSENT, "run_ended"), on_sample)

    async def _play(self, loop: OpenLoop | ClosedLoop) -> None:
        self._loops.add(loop)
        try:
            await loop.play()
        finally:
            self._loops.discard(loop)
            if not self._loops:
                self._forget_stop()

    def _labelled(self, sink: Sink, phase: str) -> Sink:
        def take(sample: Sample) -> None:
            sample.phase = phase
            sample.target = self.target.name
            sample.worker = self._worker
            sink(sample)

        return take

    def _finish(self, flight: Flight, how: tuple[End, str], on_sample: Sink) -> None:
        self._under_way.discard(flight)
        self._wheel.remove(flight)
        self._tell(flight, how, on_sample)

    def _tell(self, flight: Flight, how: tuple[End, str], on_sample: Sink) -> None:
        on_sample(flight.sample(flight.heard(*how), self._clock(), self._zero))

    def _tick(self) -> None:
        now = self._clock()
        self._ticking = None
        self.wake_lags_s.append(max(0.0, now - self._tick_at))
        self._wheel.turn(now)
        if self._under_way:
            self._tick_again(now)

    def _tick_again(self, now: float) -> None:
        self._tick_at = now + TICK_S
        self._ticking = asyncio.get_running_loop().call_later(TICK_S, self._tick)

    def _leave(self, flight: Flight) -> None:
        self._cut(flight, "patience")

    def _forget_stop(self) -> None:
        if self._stopping is not None:
            self._stopping.cancel()
            self._stopping = None

    def _end_all(self) -> None:
        self._forget_stop()
        for flight in tuple(self._under_way):
            self._cut(flight, "run_ended")

    @staticmethod
    def _cut(flight: Flight, why: str) -> None:
        leg = flight.leg
        flight.end(End.LEFT, why)
        if leg is not None:
            leg.abort()
