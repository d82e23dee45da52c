"""A TCP proxy before an engine that ends a connection in the middle of a stream, once, when it is told to."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from urllib.parse import urlsplit


class Cutter:
    """Two doors to one engine, so that it looks like two. Its threads end with their connections."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._target = (parts.hostname or "", parts.port or 0)
        self._doors = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
        self.urls = [f"http://127.0.0.1:{door.getsockname()[1]}" for door in self._doors]
        self.after_events: int | None = None
        """The next connection that carries so many events from now on is cut; None: none is."""
        for door in self._doors:
            threading.Thread(target=self._accept, args=(door,), daemon=True).start()

    def close(self) -> None:
        for door in self._doors:
            door.close()

    def _accept(self, door: socket.socket) -> None:
        while True:
            try:
                client, _ = door.accept()
            except OSError:
                return
            engine = socket.create_connection(self._target)
            threading.Thread(target=_pump, args=(client, engine), daemon=True).start()
            threading.Thread(target=self._answer, args=(engine, client), daemon=True).start()

    def _answer(self, engine: socket.socket, client: socket.socket) -> None:
        events = 0
        while piece := _read(engine):
            events = 0 if self.after_events is None else events + piece.count(b"data: ")
            if self.after_events is not None and events >= self.after_events:
                self.after_events = None
                # Half of the last event still arrives.
                client.sendall(piece[: len(piece) // 2])
                break
            _write(client, piece)
        for each in (engine, client):
            # A thread that reads from it keeps a closed socket open.
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()


def _pump(source: socket.socket, target: socket.socket) -> None:
    while piece := _read(source):
        _write(target, piece)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)


def _read(source: socket.socket) -> bytes:
    try:
        return source.recv(65536)
    except OSError:
        return b""


def _write(target: socket.socket, piece: bytes) -> None:
    with suppress(OSError):
        target.sendall(piece)
