"""A worker as the crew sees it: started, told what to send, heard, ended."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import sys
import tempfile
from collections.abc import Callable
from typing import IO

from tidegate.errors import ProtocolError, TidegateError
from tidegate.gateway.channel import Channel
from tidegate.load.crew_messages import Batch, Broken, CrewDown, CrewUp, Finished, Prepared

COMMAND = (sys.executable, "-m", "tidegate.load.worker")
"""The number of its file descriptor is added as the last argument."""
ENDS_WITHIN_S = 5.0
SHOWN_LINES = 20
"""Of what it wrote before it ended."""


class WorkerLostError(TidegateError):
    """A process of the generator ended, or could not go on: what it did not send is unknown, so there is no result."""


class WorkerProcess:
    """Made by ``spawn``."""

    def __init__(self, log: IO[bytes]) -> None:
        self._log = log
        self._channel: Channel[CrewDown, CrewUp] = Channel(CrewUp, self._on_message, self._on_closed)
        self._process: asyncio.subprocess.Process | None = None
        self._on_batch: Callable[[Batch], None] | None = None
        self._awaited: asyncio.Future[Prepared | Finished] | None = None
        self._problem = ""

    @classmethod
    async def spawn(cls, command: tuple[str, ...] = COMMAND) -> WorkerProcess:
        """It finds the modules that this process finds, for its sources. Raises OSError when the system has no room
        for another process."""
        made = cls(tempfile.TemporaryFile())  # noqa: SIM115 - open as long as the process; ``close`` closes it
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                made._process = await asyncio.create_subprocess_exec(
                    *command,
                    str(theirs.fileno()),
                    pass_fds=(theirs.fileno(),),
                    stdin=asyncio.subprocess.DEVNULL,
                    stderr=made._log,
                    env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
                )
            except OSError:
                ours.close()
                made._log.close()
                raise
        await asyncio.get_running_loop().create_unix_connection(lambda: made._channel, sock=ours)
        made._channel.listen()
        return made

    @property
    def pid(self) -> int:
        return 0 if self._process is None else self._process.pid

    async def prepared(self, play: CrewDown) -> None:
        """Give it a part; returns when it could begin. Raises ``WorkerLostError``."""
        await self._ask(play)

    async def finished(self, begin: CrewDown, on_batch: Callable[[Batch], None]) -> Finished:
        """Let it begin; returns when its last sample was told. Raises ``WorkerLostError``."""
        self._on_batch = on_batch
        told = await self._ask(begin)
        self._on_batch = None
        if not isinstance(told, Finished):
            raise WorkerLostError(f"worker {self.pid} said {type(told).__name__} out of turn")
        return told

    def tell(self, message: CrewDown) -> None:
        self._channel.send(message)

    async def close(self) -> None:
        """End it, in order if it will."""
        self._channel.close()
        process = self._process
        if process is not None:
            try:
                async with asyncio.timeout(ENDS_WITHIN_S):
                    await process.wait()
            except TimeoutError:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
        self._log.close()

    async def _ask(self, message: CrewDown) -> Prepared | Finished:
        self._awaited = asyncio.get_running_loop().create_future()
        if not self._channel.send(message):
            self._lose()
        try:
            return await self._awaited
        except WorkerLostError:
            raise WorkerLostError(await self._told()) from None
        finally:
            self._awaited = None

    def _on_message(self, message: CrewUp) -> None:
        match message:
            case Batch():
                if self._on_batch is not None:
                    self._on_batch(message)
            case Broken(problem):
                self._problem = problem
                self._lose()
            case _:
                if self._awaited is not None and not self._awaited.done():
                    self._awaited.set_result(message)

    def _on_closed(self, error: Exception | None) -> None:
        if isinstance(error, ProtocolError):
            # Of any other end its exit status says more.
            self._problem = self._problem or str(error)
        self._lose()

    def _lose(self) -> None:
        if self._awaited is not None and not self._awaited.done():
            self._awaited.set_exception(WorkerLostError())

    async def _told(self) -> str:
        """All that is known about its end."""
        what = f"could not go on: {self._problem}" if self._problem else f"ended{await self._status()}"
        lines = self._last_lines()
        return f"worker {self.pid} of the generator {what}" + (f"; it wrote:\n{lines}" if lines else "")

    async def _status(self) -> str:
        if self._process is None:
            return ""
        try:
            async with asyncio.timeout(ENDS_WITHIN_S):
                return f" with status {await self._process.wait()}"
        except TimeoutError:
            return ", as far as the crew is concerned: the connection to it is closed"

    def _last_lines(self) -> str:
        if self._log.closed:
            return ""
        self._log.seek(0)
        return "\n".join(self._log.read().decode("utf-8", "replace").splitlines()[-SHOWN_LINES:])
