"""Tokenizer processes, and what waits for them: bounded, smallest first, and never the reason that a request fails.

An answer may be None at any time, which means that nobody counted and the estimate stands: when too much is
pending, when a process dies over a question, or when it takes too long over it and is killed.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from heapq import heappop, heappush
from itertools import count

from tidegate.gateway.tokenizer_process import Owner, Seat, TokenizerProcess
from tidegate.gateway.tokenizing_messages import Question, Told

MOST_PENDING = 32
MOST_PENDING_BYTES = 32 * 1024 * 1024
LARGEST_BODY_BYTES = 8 * 1024 * 1024
"""About two million tokens, above any context."""
LARGE_BODY_BYTES = 64 * 1024
"""Such bodies are kept off one of the processes, so that short ones need not wait for them. 50 ms of tokenizing."""
STUCK_AFTER_S = 10.0
"""Loading a vocabulary of 150 000 tokens takes some 0.5 s, and a megabyte of text 0.8 s, on a core of its own."""
STUCK_PER_BYTE_S = 10e-6
SHORTEST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 60.0
"""Between the deaths of processes, doubling: what kills one will kill the next."""
MOST_PROCESSES = 4
FIRST_BYTES_PER_S = 1e6
"""Of one process, before any was timed: measured 1.1 to 1.4 on a core of its own (docs/tokenizing.md)."""
RATE_WEIGHT = 0.3
"""Of the latest large text in the moving average; a machine becomes busy within a few of them."""

Log = Callable[[str, str], None]
"""Takes a level and a line."""
Spawn = Callable[[Owner], Awaitable[Seat]]
Answer = asyncio.Future[Told | None]


def no_log(level: str, text: str) -> None:
    """For those who do not want to hear."""


def usual_processes() -> int:
    """One for what is large and at least one for what is small."""
    return min(MOST_PROCESSES, max(2, (os.cpu_count() or 1) // 2))


@dataclass(slots=True, eq=False)
class Job:
    """One question on its way."""

    question: Question
    size_bytes: int
    answer: Answer


@dataclass(slots=True, eq=False)
class Place:
    """One process, from the moment it is being started."""

    seat: Seat | None = None
    job: Job | None = None
    begun_at: float = 0.0
    timer: asyncio.TimerHandle | None = None

    @property
    def is_idle(self) -> bool:
        return self.seat is not None and self.job is None


class TokenizerPool:
    """Processes are started when something waits, and stay."""

    def __init__(
        self, spawn: Spawn = TokenizerProcess.spawn, most_processes: int | None = None, log: Log = no_log
    ) -> None:
        self._spawn = spawn
        self._log = log
        self._is_closed = False
        self._most_processes = usual_processes() if most_processes is None else most_processes
        self._numbers = count()
        self._pending: list[tuple[int, int, Job]] = []
        self._places: list[Place] = []
        self._open = 0
        self._open_bytes = 0
        self._bytes_per_s = FIRST_BYTES_PER_S
        self._deaths = 0
        """Since the last answer."""
        self._paused_until = 0.0
        self._starts: set[asyncio.Task[None]] = set()
        self.killed = 0
        """Processes that took too long."""

    def ask(self, question: Question, size_bytes: int, within_s: float = STUCK_AFTER_S) -> Answer | None:
        """The answer, later; None at once when too much is pending for one ``within_s``, or processes keep dying."""
        loop = asyncio.get_running_loop()
        if size_bytes > LARGE_BODY_BYTES and self._takes_s(size_bytes) > within_s:
            return None
        is_full = self._open >= MOST_PENDING or self._open_bytes + size_bytes > MOST_PENDING_BYTES
        if is_full or size_bytes > LARGEST_BODY_BYTES or loop.time() < self._paused_until:
            return None
        answer: Answer = loop.create_future()
        self._open += 1
        self._open_bytes += size_bytes
        answer.add_done_callback(partial(self._closed, size_bytes))
        heappush(self._pending, (size_bytes, next(self._numbers), Job(question, size_bytes, answer)))
        self._hand_out()
        return answer

    def close(self) -> None:
        """End every process."""
        self._is_closed = True
        for task in self._starts:
            task.cancel()
        self._fail_pending()
        for place in tuple(self._places):
            if place.seat is not None:
                place.seat.kill()

    def _takes_s(self, size_bytes: int) -> float:
        """Until another large text of so many bytes would be done, at the pace of the last ones."""
        return (self._open_bytes + size_bytes) / (self._bytes_per_s * max(1, self._most_processes - 1))

    def _closed(self, size_bytes: int, answer: Answer) -> None:
        del answer
        self._open -= 1
        self._open_bytes -= size_bytes

    # ---- handing out ------------------------------------------------------------------------

    def _hand_out(self) -> None:
        idle = [place for place in self._places if place.is_idle]
        while (job := self._next()) is not None:
            if not idle:
                self._start_another()
                return
            heappop(self._pending)
            self._give(idle.pop(), job)

    def _next(self) -> Job | None:
        """The smallest that somebody still waits for; None when it has to wait for others of its size."""
        while self._pending and self._pending[0][2].answer.done():
            heappop(self._pending)
        if not self._pending:
            return None
        job = self._pending[0][2]
        large = sum(place.job is not None and place.job.size_bytes > LARGE_BODY_BYTES for place in self._places)
        is_for_later = job.size_bytes > LARGE_BODY_BYTES and large >= max(1, self._most_processes - 1)
        return None if is_for_later else job

    def _give(self, place: Place, job: Job) -> None:
        loop = asyncio.get_running_loop()
        place.job, place.begun_at = job, loop.time()
        place.timer = loop.call_later(STUCK_AFTER_S + STUCK_PER_BYTE_S * job.size_bytes, self._kill, place)
        if place.seat is not None:
            place.seat.ask(job.question)

    def _kill(self, place: Place) -> None:
        self.killed += 1
        size_bytes = 0 if place.job is None else place.job.size_bytes
        self._log("warning", f"a tokenizer process did not come back from {size_bytes} bytes and is killed")
        if place.seat is not None:
            place.seat.kill()

    # ---- processes --------------------------------------------------------------------------

    def _start_another(self) -> None:
        loop = asyncio.get_running_loop()
        is_one_starting = any(place.seat is None for place in self._places)
        if is_one_starting or len(self._places) >= self._most_processes or loop.time() < self._paused_until:
            return
        place = Place()
        self._places.append(place)
        task = loop.create_task(self._start(place))
        self._starts.add(task)
        task.add_done_callback(self._starts.discard)

    async def _start(self, place: Place) -> None:
        try:
            place.seat = await self._spawn(self)
        except OSError as error:
            self._log("warning", f"a tokenizer process cannot be started: {error}")
            self._lost(place)
            return
        self._hand_out()

    def on_told(self, seat: Seat, told: Told) -> None:
        """Part of ``Owner``."""
        self._deaths = 0
        for place in self._places:
            if place.seat is seat:
                self._learn_pace(place)
                self._clear(place, told)
        self._hand_out()

    def _learn_pace(self, place: Place) -> None:
        took_s = asyncio.get_running_loop().time() - place.begun_at
        if place.job is not None and place.job.size_bytes > LARGE_BODY_BYTES and took_s > 0:
            self._bytes_per_s += RATE_WEIGHT * (place.job.size_bytes / took_s - self._bytes_per_s)

    def on_gone(self, seat: Seat) -> None:
        """Part of ``Owner``."""
        for place in tuple(self._places):
            if place.seat is seat:
                self._lost(place)

    def _lost(self, place: Place) -> None:
        self._places.remove(place)
        self._clear(place, None)
        self._deaths += 1
        pause_s = min(LONGEST_PAUSE_S, SHORTEST_PAUSE_S * 2.0 ** (self._deaths - 1))
        self._paused_until = asyncio.get_running_loop().time() + pause_s
        if not self._is_closed:
            self._log(
                "warning", f"a tokenizer process has ended; estimates stand, and none is started for {pause_s:g} s"
            )
        if self._places:
            self._hand_out()
        else:
            self._fail_pending()

    def _clear(self, place: Place, told: Told | None) -> None:
        job, place.job = place.job, None
        if place.timer is not None:
            place.timer.cancel()
            place.timer = None
        if job is not None and not job.answer.done():
            job.answer.set_result(told)

    def _fail_pending(self) -> None:
        pending, self._pending = self._pending, []
        for *_, job in pending:
            if not job.answer.done():
                job.answer.set_result(None)
