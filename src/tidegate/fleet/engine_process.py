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

    def __init__(self, process: asyncio.subprocess.Process, lifeline: int, on_line: Callable[[str], None]) -> None:
        self._process = process
        self._lifeline: int | None = lifeline
        """Our end of its standard input."""
        self._on_line = on_line
        self._listening: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._problem = ""
        self._readers: list[asyncio.Task[None]] = []

    @classmethod
    async def spawn(cls, launch: Launch, on_line: Callable[[str], None]) -> EngineProcess:
        """Start it. ``on_line`` gets what it writes, a line each. Raises EngineError if there is no such command."""
        # Pipes of our own: those of asyncio make ``wait`` last as long as anything that it started lives.
        (stdin, lifeline), (out, stdout), (err, stderr) = (os.pipe() for _ in range(3))
        try:
            os.write(lifeline, launch.first_line)
            process = await asyncio.create_subprocess_exec(
                *launch.command,
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                env={**os.environ, **launch.env},
                start_new_session=True,
            )
        except OSError as error:
            for ours in (lifeline, out, err):
                os.close(ours)
            raise EngineError(f"{launch.command[0]} cannot be started: {error}") from error
        finally:
            for theirs in (stdin, stdout, stderr):
                os.close(theirs)
        started = cls(process, lifeline, on_line)
        started._readers = [
            asyncio.create_task(started._pass_on(await _reader(pipe), pipe == out)) for pipe in (out, err)
        ]
        return started

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def resident_bytes(self) -> int | None:
        """Memory that it and all it started hold; None where the system has no /proc or they have ended."""
        pages = [_resident_pages(path.parent, self.pid) for path in Path("/proc").glob("[0-9]*/stat")]
        return sum(pages) * resource.getpagesize() or None

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
        if self._lifeline is not None:
            os.close(self._lifeline)
            self._lifeline = None
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


def _resident_pages(process: Path, group: int) -> int:
    """0 for one that is not of the group, or has just ended."""
    try:
        # After the name, which may hold anything: state, parent, process group.
        is_of_group = (process / "stat").read_text().rpartition(")")[2].split()[2] == str(group)
        return int((process / "statm").read_text().split()[1]) if is_of_group else 0
    except (OSError, IndexError):
        return 0


async def _reader(pipe: int) -> asyncio.StreamReader:
    stream = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(stream), os.fdopen(pipe, "rb", 0)
    )
    return stream


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
