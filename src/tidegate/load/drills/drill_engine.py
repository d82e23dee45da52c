"""The embedded engine as one replica of a drill: supervised as in production, and killed as nowhere else."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable
from dataclasses import replace

from tidegate.engines.llamacpp.model_file import model_file
from tidegate.engines.llamacpp.options import Options
from tidegate.engines.llamacpp.server import LlamaServer
from tidegate.fleet.supervisor import Supervisor, SupervisorConfig
from tidegate.load.drills.memory_cap import MemoryCap

SUPERVISION = SupervisorConfig()
SEQUENCES = 2
"""Several engines share a small machine: with more at once each answer would take longer than its timeouts."""
Say = Callable[[str], None]


class OwnEngine:
    """Implements ``setup.Engine`` and ``fleet.supervisor.Watcher``. One thread of its own: several share a machine."""

    def __init__(self, name: str, say: Say, cap: MemoryCap | None = None, command: tuple[str, ...] = ()) -> None:
        """``cap``: all its lives are under it, as in a container. ``command``: in place of the engine's own."""
        self.name = name
        self.lives = 0
        self.cap = cap
        self._command = command
        self._options = Options(model=str(model_file()), threads=1, sequences=SEQUENCES)
        self._server = LlamaServer(self._options.address)
        self._say = say
        self._supervisor: Supervisor | None = None
        self._running: asyncio.Task[None] | None = None

    @property
    def url(self) -> str:
        return self._options.address.url

    @property
    def api_key(self) -> str:
        return self._options.api_key

    @property
    def pid(self) -> int | None:
        """None while there is no process."""
        return None if self._supervisor is None else self._supervisor.pid

    @property
    def resident_bytes(self) -> int | None:
        return None if self._supervisor is None else self._supervisor.resident_bytes

    @property
    def is_serving(self) -> bool:
        return self._supervisor is not None and self._supervisor.url is not None

    async def start(self) -> None:
        """Returns when it serves. Raises EngineError. Nothing where it runs already."""
        if self._supervisor is None:
            launch = self._options.launch(self.name)
            launch = replace(launch, command=self._command or launch.command)
            if self.cap is not None:
                self.cap.make()
                launch = replace(launch, command=(*self.cap.prefix, *launch.command))
            self._supervisor = Supervisor(launch, self, self._is_alive, SUPERVISION)
            self._running = asyncio.create_task(self._supervisor.run())
        await self._supervisor.ready()

    async def close(self) -> None:
        supervisor, self._supervisor = self._supervisor, None
        if supervisor is not None:
            await supervisor.stop()
        if self._running is not None:
            await self._running
        if self.cap is not None:
            self.cap.remove()

    def kill(self) -> None:
        """SIGKILL to all of it; the supervisor starts it again."""
        self.signal(signal.SIGKILL)

    async def lose(self) -> None:
        """The replica and its host are gone: killed, the port closed, nobody starts it again before ``start``."""
        self.kill()
        await self.close()

    def signal(self, number: signal.Signals) -> None:
        """To the process and what it started; nothing where there is none."""
        if self.pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, number)

    def on_ready(self, url: str) -> None:
        """Part of ``Watcher``."""
        self.lives += 1
        self._say(f"{self.name}: serves at {url}")

    def on_down(self, reason: str, again_in_s: float | None) -> None:
        """Part of ``Watcher``."""
        further = "it stays down" if again_in_s is None else f"started again in {again_in_s:g} s"
        self._say(f"{self.name}: {reason}; {further}")

    def on_line(self, text: str) -> None:
        """Part of ``Watcher``."""
        self._say(text)

    async def _is_alive(self) -> bool:
        reading = await self._server.read_health(asyncio.get_running_loop().time())
        return reading.ready
