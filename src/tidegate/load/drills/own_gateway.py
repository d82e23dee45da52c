"""``tidegate serve`` as a process that a drill kills; started again when it ends, as an init system does."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from tidegate.engines.loopback import free_port
from tidegate.errors import EngineError, TidegateError
from tidegate.load.drills.setup import Setup
from tidegate.load.drills.until import until
from tidegate.wire.fetch import Reply, fetch

ENDS_WITH_US = "import ctypes; getattr(ctypes.CDLL(None), 'prctl', lambda *_: 0)(1, 15)"
"""PR_SET_PDEATHSIG: SIGTERM when the drill ends, however that happens. Linux; elsewhere nothing."""
COMMAND = (sys.executable, "-c", f"{ENDS_WITH_US}; from tidegate.cli.main import app; app()", "serve")
DATA_PROCESS = "tidegate.gateway.process"
STARTED_WITHIN_S = 60.0
AGAIN_AFTER_S = 0.5
"""Pause of the init system before it starts a service again."""
STOPPED_WITHIN_S = 20.0
ASK_WITHIN_S = 3.0


class OwnGateway:
    """``folder`` holds its configuration and its log."""

    def __init__(
        self,
        folder: Path,
        config: Mapping[str, Any],
        secrets: Mapping[str, str],
        setup: Setup,
        command: tuple[str, ...] = COMMAND,
    ) -> None:
        self.url = f"http://127.0.0.1:{free_port()}"
        self.admin_url = f"http://127.0.0.1:{free_port()}"
        self.lives = 0
        self._folder = folder
        self._env = {**os.environ, **secrets, **setup.env}
        self._setup = setup
        self._command = command
        self._process: asyncio.subprocess.Process | None = None
        self._keeping: asyncio.Task[None] | None = None
        self.config_path = folder / "tidegate.yaml"
        self.config_path.write_text(json.dumps(config, indent=2))

    @property
    def pid(self) -> int | None:
        """Of the parent; None while there is none."""
        return None if self._process is None or self._process.returncode is not None else self._process.pid

    @property
    def log(self) -> str:
        path = self._folder / "gateway.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def data_pid(self) -> int | None:
        """Of the process that moves the bytes; None while there is none."""
        found = [pid for pid in self.children() if DATA_PROCESS in _command_of(pid)]
        return found[0] if found else None

    def children(self) -> list[int]:
        return [] if self.pid is None else _children_of(self.pid)

    async def start(self) -> None:
        """Returns when it is ready. Raises EngineError with the end of its log."""
        await self._spawn()
        self._keeping = asyncio.create_task(self._keep())
        await self.ready(STARTED_WITHIN_S)

    async def ready(self, within_s: float) -> None:
        """Wait until it takes requests. Raises EngineError with the end of its log."""
        try:
            await until(self.is_ready, within_s, "the gateway is not ready")
        except EngineError as error:
            raise EngineError(f"{error}:\n{self.log[-2000:]}") from None

    async def is_ready(self) -> bool:
        return (await self._ask(f"{self.url}/ready")) is not None

    def kill(self) -> None:
        """SIGKILL to the parent, and to nobody else."""
        if self.pid is not None:
            os.kill(self.pid, signal.SIGKILL)

    def kill_data_process(self) -> None:
        pid = self.data_pid()
        if pid is not None:
            os.kill(pid, signal.SIGKILL)

    async def close(self) -> None:
        """Nothing of it is left."""
        if self._keeping is not None:
            self._keeping.cancel()
            await asyncio.gather(self._keeping, return_exceptions=True)
        process = self._process
        if process is None:
            return
        children = self.children()
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(STOPPED_WITHIN_S):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()
        for pid in children:
            # They end with their parent; one that does not must not keep the port.
            if DATA_PROCESS in _command_of(pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    async def view(self) -> dict[str, Any] | None:
        """None while it does not answer."""
        return await self._ask(f"{self.admin_url}/admin/view")

    async def rows(self, limit: int = 10_000) -> list[dict[str, Any]]:
        """Finished requests as the gateway saw them, the latest last; nothing of lives that are over."""
        found = await self._ask(f"{self.admin_url}/admin/requests?limit={limit}")
        return [] if found is None else list(found["requests"])

    async def reload(self, config: Mapping[str, Any]) -> None:
        """Run with this configuration from here on. Raises EngineError with what is wrong with it."""
        self.config_path.write_text(json.dumps(config, indent=2))
        reply = await self.admin("/admin/reload", "POST")
        if reply.status != 200:
            raise EngineError(f"the gateway refuses its new configuration: {reply.body.decode(errors='replace')}")

    async def admin(self, path: str, method: str = "GET", body: object = None) -> Reply:
        """Raises OSError, TimeoutError or ProtocolError."""
        content = b"" if body is None else msgspec.json.encode(body)
        headers = {"content-type": "application/json"}
        return await fetch(
            f"{self.admin_url}{path}", method=method, headers=headers, body=content, timeout_s=ASK_WITHIN_S
        )

    async def _ask(self, url: str) -> dict[str, Any] | None:
        try:
            reply = await fetch(url, timeout_s=ASK_WITHIN_S)
        except (OSError, TidegateError):
            return None
        if reply.status != 200:
            return None
        answer: dict[str, Any] = msgspec.json.decode(reply.body)
        return answer

    async def _spawn(self) -> None:
        ports = ("--port", self.url.rpartition(":")[2], "--admin-port", self.admin_url.rpartition(":")[2])
        command = (*self._setup.prefix, *self._command, "--config", str(self.config_path), *ports)
        with contextlib.ExitStack() as files:
            log = files.enter_context(_appending(self._folder / "gateway.log"))
            other = self._setup.stdout
            stdout = log if other is None else files.enter_context(_appending(Path(other)))
            self._process = await asyncio.create_subprocess_exec(
                *command, stdout=stdout, stderr=log, cwd=self._folder, env=self._env, start_new_session=True
            )
        self.lives += 1

    async def _keep(self) -> None:
        while self._process is not None:
            await self._process.wait()
            await asyncio.sleep(AGAIN_AFTER_S)
            await self._spawn()


def _appending(path: Path) -> BinaryIO:
    return path.open("ab")


def _children_of(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for task in tasks for child in _read(task).split()]


def _command_of(pid: int) -> str:
    return _read(Path(f"/proc/{pid}/cmdline")).replace("\0", " ")


def _read(path: Path) -> str:
    """ "" of what has just ended."""
    try:
        return path.read_text()
    except OSError:
        return ""
