"""The data process's one periodic callback: timeouts, idle connections, loop lag, garbage."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable

from tidegate.gateway.gateway import Gateway

SWEEP_EVERY_S = 1.0
COLLECT_EVERY_S = 10.0
TOO_MANY_OBJECTS = 500_000
"""Containers made and not freed since the last collection, above which one runs although streams are
active: a pause of some 100 ms is better than growing without bound."""


class Ticker:
    """``observe_lag`` gets how late each tick came, in seconds."""

    def __init__(
        self, gateway: Gateway, loop: asyncio.AbstractEventLoop, tick_s: float, observe_lag: Callable[[float], None]
    ) -> None:
        self._gateway = gateway
        self._loop = loop
        self._tick_s = tick_s
        self._observe_lag = observe_lag
        self._due_at = 0.0
        self._sweep_at = 0.0
        self._collect_at = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Tick from now on."""
        now = self._loop.time()
        self._sweep_at = now + SWEEP_EVERY_S
        self._collect_at = now + COLLECT_EVERY_S
        self._schedule(now)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _schedule(self, now: float) -> None:
        self._due_at = now + self._tick_s
        self._timer = self._loop.call_at(self._due_at, self._tick)

    def _tick(self) -> None:
        now = self._loop.time()
        self._observe_lag(max(0.0, now - self._due_at))
        # First, so that one exchange's bug can't end the ticking for all.
        self._schedule(now)
        self._gateway.tick(now)
        if now >= self._sweep_at:
            self._sweep_at = now + SWEEP_EVERY_S
            self._gateway.sweep(now)
        if now >= self._collect_at:
            self._collect_at = now + COLLECT_EVERY_S
            collect_if_idle(self._gateway.open_requests)


def stop_automatic_collection() -> None:
    """Requests are acyclic, so the collector finds nothing but costs pauses in the middle of streams."""
    gc.collect()
    gc.freeze()
    gc.disable()


def collect_if_idle(open_requests: int) -> None:
    """A full collection when nobody waits for us, or when one can't be put off any longer."""
    made = gc.get_count()[0]
    if made and (not open_requests or made > TOO_MANY_OBJECTS):
        gc.collect()
