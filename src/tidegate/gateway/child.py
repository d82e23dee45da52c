"""The data process as its parent sees it: started, asked, told, stopped.

One ``Child`` is one operating-system process. It runs in a session of its own, so that a Ctrl-C in
the terminal reaches only the parent, which then drains it; and it ends by itself when the channel
closes, so that it does not outlive a parent that was killed.
"""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
from collections import deque
from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

from tidegate.errors import TidegateError
from tidegate.gateway.channel import ParentEnd, open_parent_end
from tidegate.gateway.messages import (
    Applied,
    Apply,
    AskMarks,
    AskMetrics,
    AskView,
    CallBack,
    Down,
    Drain,
    Drained,
    Failed,
    Learned,
    LiftMark,
    Log,
    MarksTold,
    MetricsSnapshot,
    PollSoon,
    Ready,
    Records,
    SetMark,
    Start,
    Stop,
    Up,
    View,
)
from tidegate.lens.counted import Snapshot
from tidegate.lens.row import Row

COMMAND = (sys.executable, "-m", "tidegate.gateway.process")
"""The number of the channel's file descriptor is added as the last argument."""
START_WITHIN_S = 20.0
"""Interpreter start and imports take about 1 s; twenty for a machine that is busy with other things."""
ANSWER_WITHIN_S = 2.0
STOP_WITHIN_S = 3.0

Answer = TypeVar("Answer")


class ChildFailedError(TidegateError):
    """The data process could not start; the text is its own reason."""


class Listener(Protocol):
    """Who is told what the data process has to say unasked."""

    def on_records(self, rows: list[Row], lost: int) -> None:
        """Requests were closed; ``lost`` counts the dropped rows since this child's start."""

    def on_learned(self, state: dict[str, Any]) -> None:
        """What the policies have learned, for the next data process."""

    def on_poll_soon(self, replica: str) -> None:
        """An abort waits for this replica's next reading."""

    def on_log(self, level: str, text: str) -> None:
        """A line for the log."""

    def on_call_back(self, callback: CallBack) -> None:
        """Somebody wants to be told that a job has ended."""


class Child:
    """Made by ``spawn``; its ``ready`` message says where it listens."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._channel: ParentEnd | None = None
        self._process: asyncio.subprocess.Process | None = None
        self._ready: asyncio.Future[Ready] = asyncio.get_running_loop().create_future()
        self._waiting: dict[type[Up], deque[asyncio.Future[Any]]] = {
            kind: deque() for kind in (View, MetricsSnapshot, Applied, MarksTold, Drained)
        }

    @classmethod
    async def spawn(cls, start: Start, listener: Listener, command: Sequence[str] = COMMAND) -> Child:
        """Start a data process with ``start`` and wait until it listens.

        Raises ``ChildFailedError`` with its reason when it cannot.
        """
        child = cls(listener)
        ours, theirs = socket.socketpair()
        child._channel = await open_parent_end(ours, child._on_message, child._on_closed)
        with theirs:
            child._process = await asyncio.create_subprocess_exec(
                *command,
                str(theirs.fileno()),
                pass_fds=(theirs.fileno(),),
                stdin=asyncio.subprocess.DEVNULL,
                start_new_session=True,
            )
        child.send(start)
        try:
            async with asyncio.timeout(START_WITHIN_S):
                await child._ready
        except TimeoutError:
            problem = f"the data process did not answer within {START_WITHIN_S:.0f} s of its start"
            raise ChildFailedError(problem) from None
        finally:
            if not child._ready.done() or child._ready.cancelled() or child._ready.exception() is not None:
                await child.stop()
        return child

    @property
    def ready(self) -> Ready:
        return self._ready.result()

    @property
    def is_writable(self) -> bool:
        """False while the data process does not read; then what can wait should not be sent."""
        return self._channel is not None and self._channel.is_writable

    def send(self, message: Down) -> bool:
        """False when the data process is gone."""
        return self._channel is not None and self._channel.send(message)

    async def view(self) -> dict[str, Any] | None:
        """``Path.view``; None when no answer comes."""
        answer: View | None = await self._ask(AskView(), View)
        return None if answer is None else answer.view

    async def snapshot(self) -> Snapshot | None:
        """None when no answer comes."""
        answer: MetricsSnapshot | None = await self._ask(AskMetrics(), MetricsSnapshot)
        return None if answer is None else answer.snapshot

    async def apply(self, settings: dict[str, Any]) -> Applied:
        """Swap in ``settings``; the answer says what changed, or why nothing did."""
        answer: Applied | None = await self._ask(Apply(settings), Applied)
        return answer or Applied([], "the data process does not answer")

    async def mark(self, order: SetMark | LiftMark) -> Applied:
        """Set or lift a mark; the answer says what changed, or why nothing did."""
        answer: Applied | None = await self._ask(order, Applied)
        return answer or Applied([], "the data process does not answer")

    async def marks(self) -> list[dict[str, Any]] | None:
        """Every mark; None when no answer comes."""
        answer: MarksTold | None = await self._ask(AskMarks(), MarksTold)
        return None if answer is None else answer.marks

    async def drain(self, within_s: float) -> int | None:
        """Let running requests end; how many were still open at the end of ``within_s``, None: no answer."""
        answer: Drained | None = await self._ask(Drain(within_s), Drained, within_s + ANSWER_WITHIN_S)
        return None if answer is None else answer.open_requests

    async def ended(self) -> int:
        """Wait for the process to end; its exit status, negative for a signal."""
        assert self._process is not None, "spawn has made the process"  # noqa: S101 - a bug, not an input
        return await self._process.wait()

    async def stop(self) -> None:
        """End it now: asked, then told, then killed."""
        self.send(Stop())
        process = self._process
        if process is not None:
            for order in (None, signal.SIGTERM, signal.SIGKILL):
                if order is not None and process.returncode is None:
                    process.send_signal(order)
                try:
                    async with asyncio.timeout(STOP_WITHIN_S):
                        await process.wait()
                    break
                except TimeoutError:
                    continue
        if self._channel is not None:
            self._channel.close()

    def kill(self) -> None:
        """End it without another word."""
        if self._process is not None and self._process.returncode is None:
            self._process.kill()

    async def _ask(self, question: Down, kind: type[Answer], within_s: float = ANSWER_WITHIN_S) -> Answer | None:
        if not self.send(question):
            return None
        future: asyncio.Future[Answer | None] = asyncio.get_running_loop().create_future()
        self._waiting[kind].append(future)  # type: ignore[index] # kind is one of the five answers
        try:
            # Answers come in the order of the questions, so one that comes too late must still meet its own future.
            async with asyncio.timeout(within_s):
                return await asyncio.shield(future)
        except TimeoutError:
            return None

    def _on_message(self, message: Up) -> None:
        match message:
            case Records(rows, lost):
                self._listener.on_records(rows, lost)
            case Learned(state):
                self._listener.on_learned(state)
            case PollSoon(replica):
                self._listener.on_poll_soon(replica)
            case Log(level, text):
                self._listener.on_log(level, text)
            case CallBack():
                self._listener.on_call_back(message)
            case Ready():
                self._settle_ready(message)
            case Failed(problem):
                self._settle_ready(ChildFailedError(problem))
            case View() | MetricsSnapshot() | Applied() | MarksTold() | Drained():
                waiting = self._waiting[type(message)]
                if waiting:
                    waiting.popleft().set_result(message)

    def _settle_ready(self, end: Ready | Exception) -> None:
        if self._ready.done():
            if isinstance(end, Exception):
                self._listener.on_log("error", f"data process: {end}")
        elif isinstance(end, Exception):
            self._ready.set_exception(end)
        else:
            self._ready.set_result(end)

    def _on_closed(self, error: Exception | None) -> None:
        why = "" if error is None else f": {error}"
        if not self._ready.done():
            self._ready.set_exception(ChildFailedError(f"the data process ended before it listened{why}"))
        for waiting in self._waiting.values():
            while waiting:
                waiting.popleft().set_result(None)
