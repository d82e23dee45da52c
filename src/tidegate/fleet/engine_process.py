"""One life of an engine: a process from its start to its end."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import msgspec

from tidegate.engines.launch import CANNOT_RUN, Launch
from tidegate.errors import EngineError

LONGEST_LINE_BYTES = 64 * 1024
LAST_LINES_WITHIN_S = 1.0
"""After its end the pipes hold little and close at once."""


class CannotRunError(EngineError):
    """The process would fail the same way again; the text says what to do."""


class Said(msgspec.Struct):
    """What the process says about itself, by the protocol of ``engines.launch``."""

    listening: str = ""
    problem: str = ""


class EngineProcess:
    """Made by ``spawn``. It has a session of its own: a Ctrl-C in the terminal does not reach it, and
    whatever it started ends with it."""

    def __init__(self, process: asyncio.subprocess.Process, on_line: Callable[[str], None]) -> None:
        self._process = process
        self._on_line = on_line
        loop = asyncio.get_running_loop()
        self._listening: asyncio.Future[str] = loop.create_future()
        self._problem = ""
        self._readers = [
            loop.create_task(self._pass_on(stream, is_output))
            for stream, is_output in ((process.stdout, True), (process.stderr, False))
            if stream is not None
        ]

    @classmethod
    async def spawn(cls, launch: Launch, on_line: Callable[[str], None]) -> EngineProcess:
        """Start it. ``on_line`` gets what it writes, a line each. Raises EngineError if there is no such command."""
        pipe = asyncio.subprocess.PIPE
        try:
            process = await asyncio.create_subprocess_exec(
                *launch.command,
                stdin=pipe,
                stdout=pipe,
                stderr=pipe,
                env={**os.environ, **launch.env},
                start_new_session=True,
            )
        except OSError as error:
            raise EngineError(f"{launch.command[0]} cannot be started: {error}") from error
        if process.stdin is not None:
            process.stdin.write(launch.first_line)
        return cls(process, on_line)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def resident_bytes(self) -> int | None:
        """Memory it holds; None where the system has no /proc or it has ended."""
        try:
            pages = Path(f"/proc/{self.pid}/statm").read_text().split()[1]
        except (OSError, IndexError):
            return None
        return int(pages) * resource.getpagesize()

    async def listening(self) -> str:
        """The URL it serves at, once it does.

        Raises:
            CannotRunError: it ended, and would again.
            EngineError: it ended.
        """
        ended = asyncio.ensure_future(self.ended())
        try:
            await asyncio.wait((self._listening, ended), return_when=asyncio.FIRST_COMPLETED)
            if self._listening.done():
                return self._listening.result()
            status = ended.result()
            raise (CannotRunError if status == CANNOT_RUN else EngineError)(self.reason(status))
        finally:
            ended.cancel()

    async def ended(self) -> int:
        """Wait for its end and the last of its lines; its exit status, negative for a signal."""
        status = await self._process.wait()
        # What it started may live on and hold the pipes; ``stop`` ends that.
        await asyncio.wait(self._readers, timeout=LAST_LINES_WITHIN_S)
        return status

    def reason(self, status: int) -> str:
        """Why it ended: in its own words if it had any."""
        if self._problem:
            return self._problem
        if status < 0:
            return f"killed by {signal.Signals(-status).name}"
        return f"ended with status {status}"

    async def stop(self, grace_s: float) -> int:
        """SIGTERM, SIGKILL after ``grace_s``; its exit status. Leaves nothing behind that it started."""
        if self._process.returncode is None:
            self._process.send_signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(grace_s):
                await self._process.wait()
        except TimeoutError:
            self._kill_group()
        status = await self._process.wait()
        self._kill_group()
        if self._process.stdin is not None:
            self._process.stdin.close()
        await asyncio.wait(self._readers, timeout=LAST_LINES_WITHIN_S)
        return status

    def _kill_group(self) -> None:
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            return

    async def _pass_on(self, stream: asyncio.StreamReader, is_output: bool) -> None:
        async for line in _lines(stream):
            if not (is_output and self._understood(line)):
                self._on_line(line.decode("utf-8", "replace"))

    def _understood(self, line: bytes) -> bool:
        try:
            said = msgspec.json.decode(line, type=Said)
        except msgspec.DecodeError:
            return False
        if said.listening and not self._listening.done():
            self._listening.set_result(said.listening)
        self._problem = said.problem or self._problem
        return bool(said.listening or said.problem)


async def _lines(stream: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """Lines without their end; a longer one comes in pieces."""
    rest = b""
    while piece := await stream.read(LONGEST_LINE_BYTES):
        *whole, rest = (rest + piece).split(b"\n")
        for line in whole:
            yield line
        if len(rest) > LONGEST_LINE_BYTES:
            yield rest
            rest = b""
    if rest:
        yield rest
