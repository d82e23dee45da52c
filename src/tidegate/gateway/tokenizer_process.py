"""A tokenizer process as the data process sees it: started, asked, killed."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import sys
from typing import Protocol

from tidegate.gateway.channel import Channel
from tidegate.gateway.tokenizing_messages import Question, Told

COMMAND = (sys.executable, "-m", "tidegate.gateway.tokenizing")
"""The number of its file descriptor is added as the last argument."""


class Owner(Protocol):
    """Who started it."""

    def on_told(self, seat: Seat, told: Told) -> None:
        """The answer to the one question that was asked."""

    def on_gone(self, seat: Seat) -> None:
        """It has ended, or was killed; what it was asked stays unanswered."""


class Seat(Protocol):
    """Where one question at a time is answered."""

    def ask(self, question: Question) -> bool:
        """False: it is gone."""

    def kill(self) -> None:
        """End it now; ``on_gone`` follows."""


class TokenizerProcess:
    """Made by ``spawn``."""

    def __init__(self, owner: Owner) -> None:
        self._owner = owner
        self._channel: Channel[Question, Told] = Channel(Told, self._on_told, self._on_closed)
        self._process: asyncio.subprocess.Process | None = None
        self._ending: asyncio.Task[int] | None = None

    @classmethod
    async def spawn(cls, owner: Owner) -> TokenizerProcess:
        """Raises OSError when the system has no room for another process."""
        made = cls(owner)
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                made._process = await asyncio.create_subprocess_exec(
                    *COMMAND, str(theirs.fileno()), pass_fds=(theirs.fileno(),), stdin=asyncio.subprocess.DEVNULL
                )
            except OSError:
                ours.close()
                raise
        await asyncio.get_running_loop().create_unix_connection(lambda: made._channel, sock=ours)
        made._channel.listen()
        return made

    @property
    def pid(self) -> int:
        return 0 if self._process is None else self._process.pid

    async def ended(self) -> int:
        """Wait for its end; its exit status, negative for a signal."""
        return 0 if self._process is None else await self._process.wait()

    def ask(self, question: Question) -> bool:
        return self._channel.send(question)

    def kill(self) -> None:
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
        self._channel.close()

    def _on_told(self, told: Told) -> None:
        self._owner.on_told(self, told)

    def _on_closed(self, error: Exception | None) -> None:
        del error
        # Waited for, or it would stay in the process table for as long as we live.
        if self._process is not None:
            self._ending = asyncio.get_running_loop().create_task(self._process.wait())
        self._owner.on_gone(self)
