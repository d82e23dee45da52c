"""An engine of our own: launched under a supervisor, and reached where it was told to listen."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from tidegate.config.upstreams import Engine as EngineSection
from tidegate.engines.llamacpp.model_file import model_file
from tidegate.engines.llamacpp.options import Options
from tidegate.engines.llamacpp.server import LlamaServer
from tidegate.fleet.supervisor import Supervisor
from tidegate.gateway.composition import Told
from tidegate.gateway.parent import Say
from tidegate.gateway.settings import Endpoint

OnState = Callable[[str, str], None]
"""Gets a replica's name and why it does not serve, or "" when it does again."""


class Started:
    """One embedded engine; implements ``fleet.supervisor.Watcher``. Raises EngineError for a missing model."""

    def __init__(self, alias: str, name: str, section: EngineSection, say: Say, on_state: OnState) -> None:
        self.name = name
        self.options = options_of(alias, section)
        self.engine = LlamaServer(self.options.address)
        self.told = Told(
            capacity=self.options.capacity,
            kind=self.engine.kind,
            confirms_aborts=self.engine.confirms_aborts,
            abort_grace_s=self.engine.abort_grace_s,
            endpoint=Endpoint(
                name=name,
                host="127.0.0.1",
                port=self.options.port,
                kind=self.engine.kind,
                api_key=self.options.api_key,
                model=alias,
            ),
        )
        self._say = say
        self._on_state = on_state
        self._supervisor = Supervisor(self.options.launch(name), self, self._is_alive)
        self._task: asyncio.Task[None] | None = None
        self._killing: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Run it, and wait until it serves. Raises EngineError with its own reason when it cannot."""
        self._task = asyncio.create_task(self._supervisor.run())
        await self._supervisor.ready()

    @property
    def pid(self) -> int | None:
        """Of the running engine."""
        return self._supervisor.pid

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
        self._say("info", f"{self.name}: llama.cpp serves at {url}")
        self._on_state(self.name, "")

    def on_down(self, reason: str, again_in_s: float | None) -> None:
        """Part of ``Watcher``."""
        further = "it stays down" if again_in_s is None else f"it is started again in {again_in_s:g} s"
        self._say("error", f"{self.name}: the engine: {reason}; {further}")
        self._on_state(self.name, f"the engine: {reason}")

    def on_line(self, text: str) -> None:
        """Part of ``Watcher``."""
        self._say("info", text)


def options_of(alias: str, section: EngineSection) -> Options:
    """How the embedded engine of this upstream is started. Raises EngineError for a missing model."""
    options = Options(
        model=str(model_file(section.model_path)),
        alias=alias,
        sequences=section.sequences,
        context_tokens=section.context_tokens,
        prefix_caching=section.prefix_caching,
        host_cache_mib=section.host_cache_mib,
    )
    return options if section.threads is None else replace(options, threads=section.threads)


def loading_line(started: Started) -> str:
    """The start log's line before the wait (SPEC S0-11)."""
    file, threads = Path(started.options.model).name, started.options.threads
    return f"Loading model weights to CPU... ({file}, {threads} {'thread' if threads == 1 else 'threads'})"
