"""A worker's part of a phase: every n-th of its asks."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain, islice

from tidegate.load.ask import Ask
from tidegate.load.crew_messages import Batch, CrewUp, Finished
from tidegate.load.gap_counts import GapCounts
from tidegate.load.phase import Phase
from tidegate.load.sample import Sample
from tidegate.load.sender import Sender
from tidegate.load.target import Target

TELL_EVERY_S = 0.5
TELL_ABOVE_BYTES = 1 << 20
"""Of kept texts: a batch stays far below the channel's largest frame."""
TELL_ABOVE_SAMPLES = 4096
BUSY_OVER_S = 5.0
"""Waiting for the last answers, a worker is idle: over the whole phase one that had been swamped would look free."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One phase against one target, and whose part of it."""

    phase: Phase
    target: Target
    seed: int
    worker: int
    workers: int


class WorkerPart:
    """Made when the task comes, played when the crew says so."""

    def __init__(self, task: Task, sender: Sender, tell: Callable[[CrewUp], object]) -> None:
        self._task = task
        self._sender = sender
        self._tell_crew = tell
        asks = islice(task.phase.source.asks(task.seed), task.worker, None, task.workers)
        # The first ask is made now: that may take long where others stand before it.
        self._asks: Iterator[Ask] = chain([*islice(asks, 1)], asks)
        self._samples: list[Sample] = []
        self._kept_bytes = 0
        self._sent_before = sender.sent
        self._is_halted = False
        self._busy_share = 0.0
        self._marked = 0.0, 0.0

    async def play(self, began: float) -> None:
        """``began``: the clock's time at which the phase begins, for all parts of it."""
        sender = self._sender
        sender.gaps, sender.token_gaps, sender.wake_lags_s = GapCounts(), GapCounts(), []
        telling = asyncio.get_running_loop().create_task(self._tell_again())
        cpu_began = time.process_time()
        self._marked = time.monotonic(), cpu_began
        try:
            await self._send(began)
        finally:
            telling.cancel()
        self._tell()
        if not self._busy_share:
            self._mark_busy(0.0)
        cpu_s = time.process_time() - cpu_began
        gaps = [*sender.gaps.buckets.items()], [*sender.token_gaps.buckets.items()]
        self._tell_crew(Finished(*gaps, cpu_s, self._busy_share))

    def halt(self) -> None:
        """End early, or do not begin."""
        self._is_halted = True
        self._sender.stop()

    async def _send(self, began: float) -> None:
        phase, sender, task = self._task.phase, self._sender, self._task
        if phase.users is not None:
            await asyncio.sleep(began - time.monotonic())
        if self._is_halted:
            return
        if phase.users is None:
            await sender.open_loop(self._asks, began, phase.duration_s, self._take, phase.name)
            return
        users = share_of(phase.users, task.worker, task.workers)
        count = None if phase.count is None else share_of(phase.count, task.worker, task.workers)
        await sender.closed_loop(self._asks, users, phase.duration_s, count, self._take, phase.name)

    def _take(self, sample: Sample) -> None:
        self._samples.append(sample)
        self._kept_bytes += len(sample.text)
        if self._kept_bytes > TELL_ABOVE_BYTES or len(self._samples) > TELL_ABOVE_SAMPLES:
            self._tell()

    async def _tell_again(self) -> None:
        while True:
            await asyncio.sleep(TELL_EVERY_S)
            self._tell()
            self._mark_busy(BUSY_OVER_S)

    def _mark_busy(self, least_s: float) -> None:
        """How busy it was since the last mark, where that is ``least_s`` ago."""
        (marked_at, cpu_then_s), now, cpu_s = self._marked, time.monotonic(), time.process_time()
        if now - marked_at >= least_s:
            self._busy_share = max(self._busy_share, (cpu_s - cpu_then_s) / max(now - marked_at, 1e-9))
            self._marked = now, cpu_s

    def _tell(self) -> None:
        sender = self._sender
        sent = sender.sent - self._sent_before
        samples, self._samples, self._kept_bytes = self._samples, [], 0
        lags, sender.wake_lags_s = sender.wake_lags_s, []
        self._tell_crew(Batch(time.monotonic(), samples, sent + sender.overdue, sent, sender.in_flight, lags))


def share_of(total: int, worker: int, workers: int) -> int:
    """Of ``total`` things dealt out one by one."""
    return total // workers + (worker < total % workers)
