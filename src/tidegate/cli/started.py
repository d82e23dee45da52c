"""An engine of our own: launched under a supervisor, and reached where it was told to listen."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable
from dataclasses import replace

from tidegate.cli.recipe import Recipe
from tidegate.errors import TidegateError
from tidegate.fleet.supervisor import Supervisor
from tidegate.gateway.composition import Told
from tidegate.gateway.parent import Say

ROUNDING = 0.03
"""A worked-out pool may be so far off: blocks are rounded, and groups of layers padded."""

OnState = Callable[[str, str], None]
"""Gets a replica's name and why it does not serve, or "" when it does again."""


class Started:
    """One engine; implements ``fleet.supervisor.Watcher``."""

    def __init__(self, name: str, recipe: Recipe, say: Say, on_state: OnState) -> None:
        self.name = name
        self.engine = recipe.engine
        self.told: Told = recipe.told
        """What is known of it; completed by its own figures once it serves."""
        self.can_sleep = recipe.can_sleep
        self._product = recipe.product
        self.is_slow = recipe.is_slow
        self.loading_line = recipe.loading_line
        self._say = say
        self._on_state = on_state
        self._supervisor = Supervisor(recipe.launch, self, self._is_alive, recipe.supervision)
        self._task: asyncio.Task[None] | None = None
        self._killing: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Run it, and wait until it serves. Raises EngineError with its own reason when it cannot."""
        self._task = asyncio.create_task(self._supervisor.run())
        await self._supervisor.ready()
        if self.is_slow:
            await self._measure()

    async def _measure(self) -> None:
        try:
            capacity = await self.engine.capacity()
        except (OSError, TidegateError) as error:
            self._say("warning", f"{self.name}: its KV pool is taken as configured, it does not tell: {error}")
            return
        known = self.told.capacity
        if _differ(known.kv_tokens, capacity.kv_tokens):
            line = f"its KV pool is {capacity.kv_tokens} tokens, and not {known.kv_tokens} as worked out"
            self._say("warning", f"{self.name}: {line}; what it says counts")
        told = replace(
            known,
            kv_tokens=capacity.kv_tokens or known.kv_tokens,
            context_tokens=capacity.context_tokens or known.context_tokens,
        )
        self.told = replace(self.told, capacity=told)

    @property
    def pid(self) -> int | None:
        """Of the running engine."""
        return self._supervisor.pid

    @property
    def restarts(self) -> int:
        """Times that it was started again."""
        return self._supervisor.restarts

    @property
    def resident_bytes(self) -> int | None:
        """Memory it holds, as far as the system tells."""
        return self._supervisor.resident_bytes

    async def close(self) -> None:
        """End it and return when it is gone."""
        if self._task is not None:
            await self._supervisor.stop()
            await self._task

    def kill(self) -> None:
        """End it without another word; ``close`` then has little to wait for."""
        pid = self.pid
        if pid is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
        # Told at once, so that it starts no other in its place.
        self._killing = asyncio.get_running_loop().create_task(self._supervisor.stop())

    async def _is_alive(self) -> bool:
        reading = await self.engine.read_health(asyncio.get_running_loop().time())
        return reading.ready

    def on_ready(self, url: str) -> None:
        """Part of ``Watcher``."""
        self._say("info", f"{self.name}: {self._product} serves at {url}")
        self._on_state(self.name, "")

    def on_down(self, reason: str, again_in_s: float | None) -> None:
        """Part of ``Watcher``."""
        further = "it stays down" if again_in_s is None else f"it is started again in {again_in_s:g} s"
        self._say("error", f"{self.name}: the engine: {reason}; {further}")
        self._on_state(self.name, f"the engine: {reason}")

    def on_line(self, text: str) -> None:
        """Part of ``Watcher``."""
        self._say("info", text)


def _differ(worked_out: int | None, told: int | None) -> bool:
    return bool(worked_out and told and abs(told - worked_out) > ROUNDING * worked_out)
