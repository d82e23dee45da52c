"""One connection to an engine: sends a request, hands each read of the answer to its exchange."""

from __future__ import annotations

import asyncio
from typing import Protocol, cast

from tidegate.errors import ProtocolError
from tidegate.wire.responses import ResponseReader

WRITE_HIGH_BYTES = 256 * 1024


class Asker(Protocol):
    """Who waits for the answer."""

    def answer_read(self, reader: ResponseReader) -> None:
        """A read came, and the answer goes on."""

    def answer_complete(self, reader: ResponseReader) -> None:
        """The last read came; the connection has been given back already."""

    def answer_lost(self, problem: str) -> None:
        """The connection ended or broke before the answer was complete."""


class Owner(Protocol):
    """Where the connection goes when it is free, and who forgets it when it is gone."""

    def release(self, connection: EngineConnection) -> None: ...

    def forget(self, connection: EngineConnection) -> None: ...


class EngineConnection(asyncio.Protocol):
    """Owned by a pool; serves one exchange at a time."""

    __slots__ = ("_asker", "_owner", "_transport", "idle_since", "is_open", "is_reused", "reader")

    def __init__(self, owner: Owner) -> None:
        self._owner = owner
        self._asker: Asker | None = None
        self._transport: asyncio.Transport | None = None
        self.reader = ResponseReader()
        self.is_reused = False
        """It has carried an answer before, so the engine may have closed it already."""
        self.is_open = False
        self.idle_since = 0.0

    def send(self, asker: Asker, request: bytes) -> None:
        """Send a whole request; the answer goes to ``asker``."""
        self._asker = asker
        self.reader.start()
        if self._transport is not None:
            self._transport.write(request)

    def abort(self) -> None:
        """End the connection now and say nothing more: to the engine this is the client leaving."""
        self._asker = None
        self.is_open = False
        if self._transport is not None:
            self._transport.abort()

    def close(self) -> None:
        """End an idle connection."""
        self.is_open = False
        if self._transport is not None:
            self._transport.close()

    def pause_reading(self) -> None:
        """Let the engine wait: the client does not keep up."""
        if self.is_open and self._transport is not None:
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        if self.is_open and self._transport is not None:
            self._transport.resume_reading()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports do not derive from asyncio.Transport, so isinstance cannot narrow.
        self._transport = cast(asyncio.Transport, transport)
        self.is_open = True

    def data_received(self, data: bytes) -> None:
        asker = self._asker
        if asker is None:
            # Nothing was asked; whatever this is, it must not become the next answer.
            self.abort()
            return
        reader = self.reader
        try:
            reader.feed(data)
        except ProtocolError as error:
            self.abort()
            asker.answer_lost(str(error))
            return
        if reader.is_complete:
            self._asker = None
            if reader.keeps_alive and self.is_open:
                self._owner.release(self)
            else:
                self.close()
            asker.answer_complete(reader)
        elif reader.has_head:
            asker.answer_read(reader)

    def eof_received(self) -> None:
        # The transport closes itself; until it says so nothing more may be written to it.
        self.is_open = False

    def connection_lost(self, exc: Exception | None) -> None:
        asker, self._asker = self._asker, None
        self._transport = None
        self.is_open = False
        self._owner.forget(self)
        if asker is not None:
            if self.reader.finish():
                asker.answer_complete(self.reader)
            else:
                asker.answer_lost(str(exc) if exc else "the engine closed the connection")
        self.reader.close()
