"""The processes that send: one phase at a time, each process its part of it."""

from __future__ import annotations

import asyncio
import os
import pickle
import time
from collections.abc import Callable, Sequence
from functools import partial
from math import ceil, isfinite
from types import TracebackType

from tidegate.load.crew_messages import Begin, Finished, Halt, Play
from tidegate.load.phase import Phase
from tidegate.load.phase_tally import PhaseTally
from tidegate.load.played import Played
from tidegate.load.progress import Progress
from tidegate.load.request_text import RequestText
from tidegate.load.sender import GRACE_S
from tidegate.load.target import Target
from tidegate.load.worker_part import Task
from tidegate.load.worker_process import WorkerProcess

RATE_PER_PROCESS = 300.0
"""Requests per second: above it one process would be busy for a quarter of the time, and its lag begins to show."""
USERS_PER_PROCESS = 200
BEGINS_IN_S = 0.1
"""From the last worker's readiness to the phase's beginning: the word is with all of them by then."""
PROGRESS_EVERY_S = 1.0


class Crew:
    """``async with Crew(targets, seed) as crew: played = await crew.play(phase, target, on_progress)``."""

    def __init__(
        self, targets: Sequence[Target], seed: int, processes: int | None = None, grace_s: float = GRACE_S
    ) -> None:
        """``processes``: None takes as many as a phase's load needs, at most one for each core. ``grace_s``: how long
        answers under way are waited for after ``stop``. Raises ``ConfigError`` for a target whose URL is none."""
        for target in targets:
            RequestText(target)
        self._seed = seed
        self._processes = processes
        self._grace_s = grace_s
        self._workers: list[WorkerProcess] = []
        self._playing: list[WorkerProcess] = []
        self._stopped_at: float | None = None
        self.clock_zero = time.monotonic()
        """What times in samples count from."""

    async def __aenter__(self) -> Crew:
        self.clock_zero = time.monotonic()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self._dismiss()

    async def play(self, phase: Phase, target: Target, on_progress: Callable[[Progress], None] | None = None) -> Played:
        """Send the phase and wait for its last answer. ``on_progress`` is called about once a second.

        Raises:
            WorkerLostError: a process ended or could not go on; there is no result without its part.
        """
        self._stopped_at = None
        try:
            return await self._play(phase, target, on_progress)
        except BaseException:
            # Whoever is in the middle of this phase is of no use for the next.
            await self._dismiss()
            raise

    def stop(self) -> None:
        """End the phase that is played, in order: what was due and not sent is told as such, what is under way may
        still come for ``grace_s``. ``play`` then returns."""
        self._stopped_at = self._stopped_at or time.monotonic()
        for worker in self._playing:
            worker.tell(Halt())

    @property
    def pids(self) -> list[int]:
        return [worker.pid for worker in self._workers]

    async def _play(self, phase: Phase, target: Target, on_progress: Callable[[Progress], None] | None) -> Played:
        workers = await self._staff(processes_for(phase, self._processes))
        await asyncio.gather(*self._prepare(workers, phase, target))
        began = time.monotonic() + BEGINS_IN_S
        tally = PhaseTally(phase, target.name, len(workers), began - self.clock_zero, self.clock_zero)
        loop = asyncio.get_running_loop()
        showing = loop.create_task(self._show(tally, on_progress))
        finishing = loop.create_task(self._finish(workers, tally, began))
        try:
            await asyncio.wait({showing, finishing}, return_when=asyncio.FIRST_COMPLETED)
            if not finishing.done():
                # It shows until it is cancelled, unless it fails: better told now than after half an hour.
                showing.result()
            finished = await finishing
        finally:
            showing.cancel()
            finishing.cancel()
            self._playing = []
        if on_progress is not None:
            on_progress(tally.progress(self._now_s()))
        stopped_at = self._stopped_at
        return tally.played(finished, None if stopped_at is None else stopped_at - self.clock_zero)

    async def _dismiss(self) -> None:
        workers, self._workers = self._workers, []
        await asyncio.gather(*(worker.close() for worker in workers))

    async def _staff(self, number: int) -> list[WorkerProcess]:
        missing = number - len(self._workers)
        if missing > 0:
            self._workers += await asyncio.gather(*(WorkerProcess.spawn() for _ in range(missing)))
        return self._workers[:number]

    def _prepare(self, workers: list[WorkerProcess], phase: Phase, target: Target) -> list[asyncio.Task[None]]:
        tasks = []
        for number, worker in enumerate(workers):
            task = Task(phase=phase, target=target, seed=self._seed, worker=number, workers=len(workers))
            play = Play(pickle.dumps(task), self.clock_zero, self._grace_s)
            tasks.append(asyncio.get_running_loop().create_task(worker.prepared(play)))
        return tasks

    async def _finish(self, workers: list[WorkerProcess], tally: PhaseTally, began: float) -> list[Finished]:
        parts = [worker.finished(Begin(began), partial(tally.add, number)) for number, worker in enumerate(workers)]
        playing = asyncio.gather(*parts)
        self._playing = workers
        if self._stopped_at is not None:
            # While it was prepared. After a turn of the loop, in which all are told to begin.
            asyncio.get_running_loop().call_soon(self.stop)
        return await playing

    async def _show(self, tally: PhaseTally, on_progress: Callable[[Progress], None] | None) -> None:
        while True:
            await asyncio.sleep(PROGRESS_EVERY_S)
            if on_progress is not None:
                on_progress(tally.progress(self._now_s()))

    def _now_s(self) -> float:
        return time.monotonic() - self.clock_zero


def processes_for(phase: Phase, processes: int | None) -> int:
    """How many send it: as many as were asked for, else by its load; never more than it has users."""
    number = processes
    if number is None:
        rate = phase.rate_per_s if phase.rate_per_s is not None and isfinite(phase.rate_per_s) else 0.0
        load = max(rate / RATE_PER_PROCESS, (phase.users or 0) / USERS_PER_PROCESS)
        number = min(ceil(load), len(os.sched_getaffinity(0)))
    return max(1, number if phase.users is None else min(number, phase.users))
