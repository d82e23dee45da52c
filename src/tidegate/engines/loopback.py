"""A port on loopback for an engine that Tidegate starts."""

from __future__ import annotations

import secrets
import socket

from tidegate.errors import EngineError

PORTS = range(20_000, 32_000)
"""Below Linux's range for outgoing connections (from 32768): while the engine restarts, none of our own
connections can take its port."""
TRIES = 200


def free_port() -> int:
    """A port that nobody listens on at this moment. Raises EngineError."""
    for _ in range(TRIES):
        port = PORTS.start + secrets.randbelow(len(PORTS))
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise EngineError(f"no free port among {PORTS.start} to {PORTS.stop - 1} on 127.0.0.1")
