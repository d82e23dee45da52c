"""Keeps one engine running: started, watched, restarted, stopped."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

from tidegate.engines.launch import Launch
from tidegate.errors import EngineError, TidegateError
from tidegate.fleet.engine_process import CannotRunError, EngineProcess
from tidegate.fleet.restarts import RestartConfig, Restarts

Check = Callable[[], Awaitable[bool]]
"""Asks the engine for a sign of life. May raise OSError or EngineError, which count as none."""


class EngineState(Enum):
    STARTING = "starting"
    READY = "ready"
    RESTARTING = "restarting"
    """It has ended; a new start follows after a pause."""
    STOPPED = "stopped"
    """For good: asked to, or given up."""


class Watcher(Protocol):
    """Who is told. Called on the running loop."""

    def on_ready(self, url: str) -> None:
        """It serves at ``url``."""

    def on_down(self, reason: str, again_in_s: float | None) -> None:
        """It has ended, or did not start. None: it stays so."""

    def on_line(self, text: str) -> None:
        """A line for the log, with the engine's name before it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SupervisorConfig:
    """Times in seconds."""

    restart: RestartConfig = field(default_factory=RestartConfig)
    ready_within_s: float = 120.0
    """Loading the demo model takes one; a large model from a cold disk minutes."""
    check_every_s: float = 5.0
    missed_checks: int = 3
    """So many signs of life missing in a row mean that the process hangs: it is killed."""
    stop_grace_s: float = 5.0
    """Between SIGTERM and SIGKILL."""


class Supervisor:
    """``run`` is a task of the caller's; everything else may be called beside it."""

    def __init__(
        self,
        launch: Launch,
        watcher: Watcher,
        check: Check | None = None,
        config: SupervisorConfig = SupervisorConfig(),
    ) -> None:
        self.state = EngineState.STARTING
        self.reason = ""
        """Of the last end, in words."""
        self.restarts = 0
        self.url: str | None = None
        """While it is ready."""
        self._launch = launch
        self._watcher = watcher
        self._check = check
        self._config = config
        self._restarts = Restarts(config.restart)
        self._process: EngineProcess | None = None
        self._stopping = asyncio.Event()
        self._at_rest = asyncio.Event()
        self._at_rest.set()
        self._changed = asyncio.Condition()

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    @property
    def resident_bytes(self) -> int | None:
        """Memory that the engine holds, as far as it is known."""
        return None if self._process is None else self._process.resident_bytes

    async def ready(self) -> str:
        """Wait until it serves; the URL. Raises EngineError with the reason once it is stopped for good."""
        async with self._changed:
            await self._changed.wait_for(lambda: self.state in (EngineState.READY, EngineState.STOPPED))
        if self.url is None:
            raise EngineError(f"{self._launch.name} was stopped" if self._stopping.is_set() else self.reason)
        return self.url

    async def run(self) -> None:
        """Keep it running until ``stop``, or until it is given up."""
        self._at_rest.clear()
        try:
            while not self._stopping.is_set():
                await self._enter(EngineState.STARTING)
                pause_s = await self._live()
                if pause_s is None or self._stopping.is_set():
                    break
                await self._enter(EngineState.RESTARTING)
                self._watcher.on_down(self.reason, pause_s)
                await self._unless_stopped(pause_s)
                self.restarts += 1
        finally:
            await self._enter(EngineState.STOPPED)
            self._at_rest.set()
        if not self._stopping.is_set():
            self._watcher.on_down(self.reason, None)

    async def stop(self) -> None:
        """End the engine and return when it is gone."""
        self._stopping.set()
        if self._process is not None:
            await self._process.stop(self._config.stop_grace_s)
        await self._at_rest.wait()

    async def _live(self) -> float | None:
        """One life of the engine, and the pause after it; None: no further one."""
        loop = asyncio.get_running_loop()
        ready_at: float | None = None
        try:
            process = self._process = await EngineProcess.spawn(self._launch, self._on_line)
            try:
                await self._enter(EngineState.READY, await self._until_it_serves(process))
                ready_at = loop.time()
                self.reason = await self._watch(process)
            finally:
                self._process = None
                await process.stop(self._config.stop_grace_s)
        except CannotRunError as error:
            self.reason = str(error)
            return None
        except EngineError as error:
            self.reason = str(error)
        return self._restarts.pause_s(None if ready_at is None else loop.time() - ready_at)

    async def _until_it_serves(self, process: EngineProcess) -> str:
        """Its URL. Raises EngineError."""
        if self._stopping.is_set():
            raise EngineError("stopped during its start")
        try:
            async with asyncio.timeout(self._config.ready_within_s):
                return await process.listening()
        except TimeoutError:
            raise EngineError(f"not ready within {self._config.ready_within_s:.0f} s of its start") from None

    async def _watch(self, process: EngineProcess) -> str:
        """Until it ends or hangs; the reason."""
        ended = asyncio.ensure_future(process.ended())
        try:
            missed = 0
            while missed < self._config.missed_checks:
                done, _ = await asyncio.wait((ended,), timeout=self._config.check_every_s)
                if done:
                    return process.reason(ended.result())
                missed = 0 if await self._is_alive() else missed + 1
            return f"hangs: no sign of life in {missed} checks"
        finally:
            ended.cancel()

    async def _is_alive(self) -> bool:
        if self._check is None:
            return True
        try:
            return await self._check()
        except (OSError, TidegateError):
            return False

    async def _enter(self, state: EngineState, url: str | None = None) -> None:
        async with self._changed:
            self.state, self.url = state, url
            self._changed.notify_all()
        if url is not None:
            self._watcher.on_ready(url)

    async def _unless_stopped(self, pause_s: float) -> None:
        try:
            async with asyncio.timeout(pause_s):
                await self._stopping.wait()
        except TimeoutError:
            return

    def _on_line(self, text: str) -> None:
        self._watcher.on_line(f"{self._launch.name}: {text}")
