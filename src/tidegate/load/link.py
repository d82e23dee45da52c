"""One connection of the load generator to its target."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol, cast

from tidegate.errors import ProtocolError
from tidegate.load.flight import Flight
from tidegate.load.heard import End
from tidegate.wire.responses import ResponseReader

RESEND_WITHIN_S = 1.0
"""A server that closed an idle connection says so within a round trip; one that ends it later had the request."""


class Links(Protocol):
    """Where a connection goes when it is free, and what becomes of a request that met a closed one."""

    def release(self, link: Link) -> None: ...

    def forget(self, link: Link) -> None: ...

    def resend(self, flight: Flight) -> None: ...


class Link(asyncio.Protocol):
    """Carries one request at a time."""

    _reader: ResponseReader
    """Made with the connection: it stands in a cycle, which nobody would break where no connection comes about."""

    __slots__ = ("_clock", "_flight", "_owner", "_reader", "_transport", "has_carried", "is_open")

    def __init__(self, owner: Links, clock: Callable[[], float]) -> None:
        self._owner = owner
        self._clock = clock
        self._flight: Flight | None = None
        self._transport: asyncio.Transport | None = None
        self.is_open = False
        self.has_carried = False
        """Another answer came over it, so the server may have closed it in the meantime."""

    def send(self, flight: Flight) -> None:
        self._flight = flight
        flight.leg = self
        flight.is_reused = self.has_carried
        self._reader.start()
        if self._transport is not None:
            self._transport.write(flight.request)

    def abort(self) -> None:
        """End it now: to the server this is a client that leaves."""
        self._flight = None
        self.is_open = False
        if self._transport is not None:
            self._transport.abort()

    def close(self) -> None:
        self.is_open = False
        if self._transport is not None:
            self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports do not derive from asyncio.Transport, so isinstance cannot narrow.
        self._transport = cast(asyncio.Transport, transport)
        self._reader = ResponseReader()
        self.is_open = True

    def data_received(self, data: bytes) -> None:
        now = self._clock()
        flight, reader = self._flight, self._reader
        if flight is None:
            # Nothing was asked; whatever this is, it must not become the next answer.
            self.abort()
            return
        try:
            reader.feed(data)
        except ProtocolError as error:
            self.abort()
            flight.end(End.LOST, type(error).__name__)
            return
        if reader.has_head:
            flight.take(reader, now)
        if reader.is_complete:
            self._complete(flight)

    def eof_received(self) -> None:
        # The transport closes itself; until it says so nothing more may be written to it.
        self.is_open = False

    def connection_lost(self, exc: Exception | None) -> None:
        flight, self._flight = self._flight, None
        reader = self._reader
        self._transport = None
        self.is_open = False
        self._owner.forget(self)
        if flight is not None:
            self._lose(flight, exc)
        reader.close()

    def _complete(self, flight: Flight) -> None:
        self._flight = None
        self.has_carried = True
        if self._reader.keeps_alive and self.is_open:
            self._owner.release(self)
        else:
            self.close()
        flight.end(End.COMPLETE)

    def _lose(self, flight: Flight, error: Exception | None) -> None:
        reader = self._reader
        if reader.finish():
            flight.end(End.COMPLETE)
        elif self._was_stale(flight):
            self._owner.resend(flight)
        else:
            flight.end(End.LOST, type(error).__name__ if error else "closed")

    def _was_stale(self, flight: Flight) -> bool:
        is_first_try = flight.is_reused and not flight.is_resent
        return is_first_try and not self._reader.has_begun and self._clock() - flight.sent_at < RESEND_WITHIN_S
