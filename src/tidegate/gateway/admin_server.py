"""The admin API on its port, in the parent's loop."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from starlette.applications import Starlette


class _Server(uvicorn.Server):
    """Leaves signals alone: the parent decides what a Ctrl-C ends, and in which order."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class AdminServer:
    """Owns ``sock`` (listening already) until ``close``."""

    def __init__(self, app: Starlette, sock: socket.socket) -> None:
        # The wait for open connections is short: a scrape takes milliseconds, and an idle browser must not hold up.
        config = uvicorn.Config(
            app, log_level="warning", access_log=False, lifespan="off", timeout_graceful_shutdown=1, server_header=False
        )
        self._server = _Server(config)
        self._sock = sock
        self._task: asyncio.Task[None] | None = None

    @property
    def port(self) -> int:
        return int(self._sock.getsockname()[1])

    def start(self) -> None:
        """Answer from the next turn of the loop on."""
        self._task = asyncio.get_running_loop().create_task(self._server.serve(sockets=[self._sock]))

    async def close(self) -> None:
        """Finish what is being answered, within a second, and free the port."""
        self._server.should_exit = True
        if self._task is not None:
            await self._task
        self._sock.close()
