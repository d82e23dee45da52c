"""The connections to one replica, and how it is addressed."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Protocol

from tidegate.engines.llamacpp.server import LlamaServer
from tidegate.gateway.engine_connection import EngineConnection
from tidegate.gateway.settings import Endpoint, Timers

Dial = Callable[[Endpoint, Callable[[], EngineConnection]], Awaitable[EngineConnection]]
"""Opens a connection to an endpoint (``gateway.dial``; tests bring their own). Raises OSError."""


class Caller(Protocol):
    """Who needs a connection."""

    def engine_ready(self, engine: EngineConnection, attempt: int) -> bool:
        """False: no longer wanted."""

    def engine_unreachable(self, problem: str, attempt: int) -> None: ...


class Pool:
    """Idle connections are reused newest first, so that those not needed grow old and go."""

    def __init__(self, endpoint: Endpoint, timers: Timers, loop: asyncio.AbstractEventLoop, dial: Dial) -> None:
        self.endpoint = endpoint
        self.prefix = _prefix(endpoint)
        """What stands before the client's path in the request line."""
        self.own_headers = _own_headers(endpoint)
        """Header lines that every request to this replica carries."""
        self.replica_header = b"x-tidegate-replica: %b\r\n" % endpoint.name.encode("latin-1", "replace")
        self.gathers = endpoint.kind == LlamaServer.kind
        """Whole answers are asked for as streams (``gateway.gathering``)."""
        self.priorities = dict(endpoint.priorities)
        self._timers = timers
        self._loop = loop
        self._dial = dial
        self._idle: deque[EngineConnection] = deque()
        self._dials: set[asyncio.Task[None]] = set()
        self._is_closed = False
        self.now = loop.time()
        """The loop's clock as of the last tick: exact enough for ages of seconds."""

    def take(self) -> EngineConnection | None:
        """An idle connection that is young enough to be trusted, or None."""
        idle = self._idle
        while idle:
            connection = idle.pop()
            if connection.is_open and self.now - connection.idle_since <= self._timers.reuse_s:
                return connection
            connection.close()
        return None

    def connect_for(self, caller: Caller, attempt: int) -> None:
        """Open a connection for ``caller``; ``attempt`` comes back with the result."""
        task = self._loop.create_task(self._connect(caller, attempt))
        self._dials.add(task)
        task.add_done_callback(self._dials.discard)

    def release(self, connection: EngineConnection) -> None:
        """The connection is free again."""
        if self._is_closed:
            connection.close()
            return
        connection.is_reused = True
        connection.idle_since = self.now
        self._idle.append(connection)

    def forget(self, connection: EngineConnection) -> None:
        """The connection is gone."""
        if connection in self._idle:
            self._idle.remove(connection)

    def sweep(self) -> None:
        """Close what has been idle too long."""
        while self._idle and self.now - self._idle[0].idle_since > self._timers.reuse_s:
            self._idle.popleft().close()

    def retire(self) -> None:
        """The replica is no longer configured so: idle connections go now, busy ones and those that are being opened
        when they are done. A reload drops nothing."""
        self._is_closed = True
        while self._idle:
            self._idle.popleft().close()

    def close(self) -> None:
        """The process ends: nothing is waited for."""
        self.retire()
        for task in self._dials:
            task.cancel()

    async def _connect(self, caller: Caller, attempt: int) -> None:
        try:
            async with asyncio.timeout(self._timers.connect_s):
                connection = await self._dial(self.endpoint, lambda: EngineConnection(self))
        except TimeoutError:
            caller.engine_unreachable(f"no connection within {self._timers.connect_s} s", attempt)
            return
        except OSError as error:
            caller.engine_unreachable(str(error), attempt)
            return
        except asyncio.CancelledError:
            caller.engine_unreachable("the gateway stops", attempt)
            raise
        if not caller.engine_ready(connection, attempt):
            self.release(connection)


def _authority(endpoint: Endpoint) -> bytes:
    host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
    is_default = endpoint.port == (443 if endpoint.is_tls else 80)
    return (host if is_default else f"{host}:{endpoint.port}").encode("ascii")


def _prefix(endpoint: Endpoint) -> bytes:
    base = endpoint.base_path.rstrip("/").encode("ascii")
    if endpoint.proxy is not None and not endpoint.is_tls:
        # A forward proxy wants the absolute form; https goes through a tunnel and does not.
        return b"http://%b%b" % (_authority(endpoint), base)
    return base


def _own_headers(endpoint: Endpoint) -> bytes:
    lines = b"host: %b\r\n" % _authority(endpoint)
    if endpoint.api_key is not None and not endpoint.is_passthrough:
        lines += b"authorization: Bearer %b\r\n" % endpoint.api_key.encode("latin-1")
    return lines
