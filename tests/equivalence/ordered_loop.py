"""The virtual event loop with the simulator's manners.

asyncio fires timers of one moment in any order and, by rounding, some femtoseconds beside their
time. Here each fires at its time and in the order in which they were set, so that what differs
between the two drivers is the drivers' doing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import Context
from functools import partial
from heapq import heappop, heappush
from typing import Any, TypeVarTuple, Unpack

from tidegate.simulate.clock import Clock
from tidegate.testing.virtual_loop import VirtualLoop

Arguments = TypeVarTuple("Arguments")


class OrderedLoop(VirtualLoop):
    def __init__(self) -> None:
        super().__init__(start_s=0.0)
        self._due: list[tuple[float, int, asyncio.TimerHandle, Callable[[], object]]] = []
        self._sequence = 0
        self._problem: BaseException | None = None
        self.set_exception_handler(self._fail)

    def run_until(self, at: float) -> None:
        """Let time pass until ``at``. Raises what a callback raised, which asyncio would only log."""
        self.call_at(at, self.stop)
        self.run_forever()
        if self._problem is not None:
            raise self._problem

    def _fail(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        self._problem = context.get("exception") or RuntimeError(context["message"])
        self.stop()

    def call_at(
        self,
        when: float,
        callback: Callable[[Unpack[Arguments]], object],
        *args: *Arguments,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """One timer of asyncio's per call, but what it fires is whatever is due first."""
        self._sequence += 1
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        call: Callable[[], object] = partial(callback, *args)
        heappush(self._due, (when, self._sequence, handle, call))
        super().call_at(when, self._fire)
        return handle

    def _fire(self) -> None:
        when, _, handle, call = heappop(self._due)
        self._jump.now = when
        if not handle.cancelled():
            call()


class LoopClock(Clock):
    """The simulator's clock, kept by an event loop: its clients and engines live on it."""

    def __init__(self, loop: OrderedLoop) -> None:
        self._loop = loop
        super().__init__()

    @property
    def now(self) -> float:
        return self._loop.time()

    @now.setter
    def now(self, at: float) -> None:
        if at:
            raise AttributeError("the loop moves its own clock")

    def schedule(self, at: float, action: Callable[..., None], *arguments: Any) -> None:
        self._loop.call_at(max(at, self.now), action, *arguments)
