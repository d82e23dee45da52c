"""The parent's half of the gateway: keeps a data process running and collects what it says.

Owns the ring of records, the facts for the metrics and the child. What is told to a child that is
gone is told again to the next one: settings, what its policies had learned, drained replicas and the
latest readings.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from tidegate.gateway.callback_sender import CallbackSender
from tidegate.gateway.child import COMMAND, Child, ChildFailedError
from tidegate.gateway.messages import (
    Applied,
    AskLearned,
    CallBack,
    DrainReplica,
    LiftMark,
    Observe,
    Ready,
    SetMark,
    Start,
)
from tidegate.gateway.reading_news import ReadingNews
from tidegate.gateway.settings import Settings, to_plain
from tidegate.lens.counted import Snapshot
from tidegate.lens.exposition import ParentFacts
from tidegate.lens.logline import log_line
from tidegate.lens.ring import Ring
from tidegate.lens.row import Row
from tidegate.policy.reading import Reading

FIRST_BACKOFF_S = 0.1
LONGEST_BACKOFF_S = 5.0
KEEP_EVERY_S = 10.0
"""Between two questions for what the policies have learned; a data process that dies loses no more than that."""
CALLBACKS_S = 2.0
"""For callbacks that are under way when the service ends."""
STEADY_AFTER_S = 10.0
"""A data process that ran this long has started well; the next restart does not wait longer for it."""

Say = Callable[[str, str], None]
"""Writes a log line; gets a level (info, warning, error) and a text."""


class Parent:
    """Implements ``child.Listener``. ``on_poll_wanted`` is called with the replica to look at soon."""

    def __init__(
        self,
        settings: Settings,
        ring: Ring,
        say: Say,
        on_poll_wanted: Callable[[str], None],
        command: Sequence[str] = COMMAND,
    ) -> None:
        self.settings = settings
        self.ring = ring
        self.facts = ParentFacts(started_at=time.time())
        self._say = say
        self._on_poll_wanted = on_poll_wanted
        self._command = command
        self._child: Child | None = None
        self._is_stopping = False
        self._drained: set[str] = set()
        self._readings: dict[str, Reading] = {}
        self._news = ReadingNews(say)
        self.learned: dict[str, Any] | None = None
        """By the policies, as far as the data process has told (``Path.dump``)."""
        self._lost_before = 0
        self._callbacks = CallbackSender(say)

    async def start(self) -> Ready:
        """Start the data process. Raises ``ChildFailedError`` with its own reason."""
        self._child = await self._spawn()
        # A port that the system chose is kept over restarts: clients know it.
        self.settings = replace(self.settings, port=self._child.ready.port)
        return self._child.ready

    async def _spawn(self) -> Child:
        return await Child.spawn(Start(to_plain(self.settings), self.learned, self._readings), self, self._command)

    async def keep(self) -> None:
        """Ask for what the policies have learned, again and again, for ever."""
        while True:
            await asyncio.sleep(KEEP_EVERY_S)
            if self._child is not None and self._child.is_writable:
                self._child.send(AskLearned())

    async def watch(self) -> None:
        """Start the data process again whenever it ends; returns after ``stop``."""
        backoff_s = FIRST_BACKOFF_S
        while self._child is not None:
            began = time.monotonic()
            status = await self._child.ended()
            if self._is_stopping:
                return
            self._say("error", f"the data process ended with status {status}; its requests are lost; starting another")
            if time.monotonic() - began > STEADY_AFTER_S:
                backoff_s = FIRST_BACKOFF_S
            backoff_s = await self._start_again(backoff_s)

    async def _start_again(self, backoff_s: float) -> float:
        """Try until one starts; the next backoff."""
        self._child = None
        self._lost_before = self.ring.lost
        while not self._is_stopping:
            await asyncio.sleep(backoff_s)
            backoff_s = min(LONGEST_BACKOFF_S, backoff_s * 2)
            try:
                child = await self._spawn()
            except ChildFailedError as error:
                self._say("error", f"the data process did not start: {error}; next try in {backoff_s:.1f} s")
                continue
            await self._adopt(child)
            break
        return backoff_s

    async def _adopt(self, child: Child) -> None:
        if self._is_stopping:
            await child.stop()
            return
        self._child = child
        self._say("info", f"the data process runs again (pid {child.ready.pid})")
        self.facts.data_process_restarts += 1
        for replica in sorted(self._drained):
            child.send(DrainReplica(replica, True))

    @property
    def is_running(self) -> bool:
        """There is a data process that has said that it listens."""
        return self._child is not None

    def observe(self, replica: str, reading: Reading) -> None:
        """Hand a reading down; left out while the data process does not read, for the next one is newer."""
        self._readings[replica] = reading
        self._news.note(replica, reading)
        self.facts.readings = self._readings
        if self._child is not None and self._child.is_writable:
            self._child.send(Observe(replica, reading))

    async def apply(self, settings: Settings) -> Applied:
        """Swap in ``settings`` for the child, and for every later one. The ports stay as they are."""
        settings = replace(settings, host=self.settings.host, port=self.settings.port)
        if self._child is None:
            return Applied([], "the data process is not running")
        applied = await self._child.apply(to_plain(settings))
        if not applied.problem:
            self.settings = settings
            names = {replica.name for replica in settings.path.replicas}
            self._drained &= names
            self._readings = {name: reading for name, reading in self._readings.items() if name in names}
            self._news.keep(names)
        return applied

    async def drain_replica(self, replica: str, on: bool) -> bool:
        """Take a replica out of service or back in. False: there is none of this name."""
        if replica not in {each.name for each in self.settings.path.replicas}:
            return False
        if on:
            self._drained.add(replica)
        else:
            self._drained.discard(replica)
        return self._child is None or self._child.send(DrainReplica(replica, on))

    async def mark(self, order: SetMark | LiftMark) -> Applied:
        """Set or lift a mark; a data process that has to be started again is told of it too."""
        if self._child is None:
            return Applied([], "the data process is not running")
        applied = await self._child.mark(order)
        self._child.send(AskLearned())
        return applied

    async def marks(self) -> list[dict[str, Any]] | None:
        """None when the data process does not answer."""
        return None if self._child is None else await self._child.marks()

    async def view(self) -> dict[str, Any] | None:
        return None if self._child is None else await self._child.view()

    async def snapshot(self) -> Snapshot | None:
        return None if self._child is None else await self._child.snapshot()

    async def stop(self, drain_s: float) -> int | None:
        """Drain, then end the data process; requests that were still open, None when it was gone already."""
        self._is_stopping = True
        child = self._child
        if child is None:
            return None
        open_requests = await child.drain(drain_s)
        await child.stop()
        await self._callbacks.stop(CALLBACKS_S)
        return open_requests

    def kill(self) -> None:
        """End the data process without another word."""
        self._is_stopping = True
        if self._child is not None:
            self._child.kill()

    def on_records(self, rows: list[Row], lost: int) -> None:
        """Part of ``child.Listener``."""
        self.ring.lost = self._lost_before + lost
        self.ring.add(rows)
        if self.settings.are_requests_logged:
            offset_s = unix_minus_monotonic_s()
            for row in rows:
                self._say("info", log_line(row, offset_s))

    def on_learned(self, state: dict[str, Any]) -> None:
        """Part of ``child.Listener``."""
        self.learned = state

    def on_poll_soon(self, replica: str) -> None:
        """Part of ``child.Listener``."""
        self._on_poll_wanted(replica)

    def on_log(self, level: str, text: str) -> None:
        """Part of ``child.Listener``."""
        self._say(level, text)

    def on_call_back(self, callback: CallBack) -> None:
        """Part of ``child.Listener``."""
        self._callbacks.secret = self.settings.callbacks.secret
        self._callbacks.send(callback)


def unix_minus_monotonic_s() -> float:
    """Both processes run on one machine, so they share the monotonic clock."""
    return time.time() - time.monotonic()
