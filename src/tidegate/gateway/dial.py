"""Opens connections to engines: plain, TLS, or through a forward proxy."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from tidegate.gateway.engine_connection import EngineConnection
from tidegate.gateway.settings import Endpoint
from tidegate.wire.proxy import connect_through
from tidegate.wire.tls import Tls


class Dialer:
    """Keeps one TLS context per endpoint, since loading authorities costs some 10 ms."""

    def __init__(self) -> None:
        self._tls: dict[tuple[str | None, str | None], Tls] = {}

    async def __call__(self, endpoint: Endpoint, connection: Callable[[], EngineConnection]) -> EngineConnection:
        """Raises OSError, also for a failed TLS handshake or a proxy that refuses."""
        loop = asyncio.get_running_loop()
        tls = self._tls_of(endpoint) if endpoint.is_tls else None
        name = (endpoint.server_name or endpoint.host) if tls else None
        context = tls.context if tls else None
        if endpoint.proxy is None:
            _, made = await loop.create_connection(
                connection, endpoint.host, endpoint.port, ssl=context, server_hostname=name
            )
            return made
        sock = await connect_through(endpoint.proxy, endpoint.host, endpoint.port, tunnel=endpoint.is_tls)
        _, made = await loop.create_connection(connection, sock=sock, ssl=context, server_hostname=name)
        return made

    def _tls_of(self, endpoint: Endpoint) -> Tls:
        key = (endpoint.ca_file, endpoint.server_name)
        if key not in self._tls:
            self._tls[key] = Tls(*key)
        return self._tls[key]
