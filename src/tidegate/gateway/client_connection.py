"""One client's connection: requests in order, one running at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol, cast

from tidegate.errors import ProtocolError
from tidegate.gateway import proxy_preamble
from tidegate.gateway.access import Access
from tidegate.gateway.reply import CONTINUE
from tidegate.gateway.running import Running
from tidegate.gateway.settings import Limits, Timers
from tidegate.wire.errors import MISTAKE_OF_STATUS, Mistake
from tidegate.wire.requests import Incoming, RequestReader

WRITE_HIGH_BYTES = 256 * 1024
"""Unsent bytes above which the engine's connection is no longer read."""


class Plane(Protocol):
    """What a connection stands on; the gateway is one. A reload swaps ``limits``, ``timers`` and ``access``."""

    limits: Limits
    timers: Timers
    access: Access
    now: Callable[[], float]
    connections: set[ClientConnection]
    """Every open one; each enters and leaves by itself."""

    @property
    def is_draining(self) -> bool:
        """Nothing further is taken."""

    def begin(self, connection: ClientConnection, incoming: Incoming, now: float) -> None:
        """Start what ``incoming`` asks for; it may be over when this returns."""

    def reject(self, connection: ClientConnection, mistake: Mistake, detail: str, status: int) -> None:
        """Answer bytes that are no request."""


class ClientConnection(asyncio.Protocol):
    """Parses, starts exchanges, and tells them when the client is slow or gone."""

    __slots__ = (
        "_begun_at",
        "_gateway",
        "_is_paused",
        "_is_starting",
        "_last_read_at",
        "_lingers_until",
        "_preamble",
        "_reader",
        "exchange",
        "source",
        "transport",
    )

    def __init__(self, gateway: Plane) -> None:
        self._gateway = gateway
        self._reader = RequestReader(gateway.limits.head_bytes, gateway.limits.body_bytes)
        self.transport: asyncio.Transport | None = None
        self.source = ""
        """The client's address, as far as the connection tells."""
        self.exchange: Running | None = None
        self._preamble: bytes | None = None
        """What came of a PROXY preamble so far; None when none is expected any more."""
        self._is_paused = False
        self._is_starting = False
        self._lingers_until = 0.0
        self._begun_at = 0.0
        """When the request that is being read began; 0.0 between requests."""
        self._last_read_at = gateway.now()

    # ---- reading ----------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports do not derive from asyncio.Transport, so isinstance cannot narrow.
        self.transport = cast(asyncio.Transport, transport)
        self.transport.set_write_buffer_limits(high=WRITE_HIGH_BYTES)
        peer = transport.get_extra_info("peername")
        self.source = peer[0] if peer else ""
        if self._gateway.access.trusts(self.source):
            self._preamble = b""
        self._gateway.connections.add(self)

    def data_received(self, data: bytes) -> None:
        if self._lingers_until:
            return
        now = self._last_read_at = self._gateway.now()
        try:
            if self._preamble is not None:
                data = self._take_preamble(data)
            self._reader.feed(data)
        except ProtocolError as error:
            self._start_ready(now)
            self._refuse(error)
            return
        if self._reader.ready:
            self._start_ready(now)
            if len(self._reader.ready) >= self._gateway.limits.pipelined_requests and self.transport is not None:
                self.transport.pause_reading()
        if self._reader.is_partial or self._begun_at:
            self._note_progress()

    def _take_preamble(self, data: bytes) -> bytes:
        """Bytes that are none of a PROXY preamble."""
        held = (self._preamble or b"") + data
        if not proxy_preamble.may_begin(held):
            self._preamble = None
            return held
        found = proxy_preamble.read(held)
        if found is None:
            self._preamble = held
            return b""
        address, length = found
        self.source = address or self.source
        self._preamble = None
        return held[length:]

    def _note_progress(self) -> None:
        """A request that has begun and is not complete is held to a time."""
        reader, transport = self._reader, self.transport
        if not reader.is_partial:
            self._begun_at = 0.0
        elif not self._begun_at:
            self._begun_at = self._last_read_at
        if transport is None:
            return
        if reader.awaits_continue and self.exchange is None:
            reader.awaits_continue = False
            transport.write(CONTINUE)

    def _start_ready(self, now: float) -> None:
        """Start what is complete, one after the other; many may end at once."""
        if self._is_starting:
            return
        self._is_starting = True
        ready = self._reader.ready
        try:
            while ready and self.exchange is None and self.transport is not None:
                self._gateway.begin(self, ready.popleft(), now)
        finally:
            self._is_starting = False

    def exchange_over(self, keeps_alive: bool, now: float) -> None:
        """The answer is sent."""
        self.exchange = None
        transport = self.transport
        if transport is None:
            return
        if not keeps_alive:
            transport.close()
            return
        self._last_read_at = now
        if self._reader.ready:
            self._start_ready(now)
            if not self._reader.ready:
                transport.resume_reading()
        if self._reader.is_partial:
            self._note_progress()

    # ---- refusing ---------------------------------------------------------------------------

    def _refuse(self, error: ProtocolError) -> None:
        """Answer bytes that are no request. Behind a running answer nothing can be said any more."""
        self._reader.close()
        if self.transport is None:
            return
        if self.exchange is not None or self.transport.is_closing():
            self.transport.abort()
            return
        mistake = MISTAKE_OF_STATUS.get(error.status, Mistake.BAD_HTTP)
        self._gateway.reject(self, mistake, str(error), error.status)
        self._linger()

    def _linger(self) -> None:
        """Closing over unread bytes sends a reset, and the client would lose the answer: read on a while."""
        transport = self.transport
        if transport is None:
            return
        if transport.can_write_eof():
            transport.write_eof()
        self._lingers_until = self._gateway.now() + self._gateway.timers.linger_s

    def sweep(self, now: float) -> None:
        """Close what has been idle or slow for too long; called about once a second."""
        timers, transport = self._gateway.timers, self.transport
        if transport is None:
            return
        if self._lingers_until:
            if now >= self._lingers_until:
                transport.abort()
        elif self.exchange is not None:
            return
        elif self._begun_at:
            # A body may take long as long as it moves; a head may not.
            since = self._last_read_at if self._reader.has_head else self._begun_at
            if now - since >= timers.head_s:
                self._refuse(ProtocolError("the request did not arrive in time", 408))
        elif now - self._last_read_at >= timers.idle_s or self._gateway.is_draining:
            transport.close()

    # ---- the transport ----------------------------------------------------------------------

    def pause_writing(self) -> None:
        self._is_paused = True
        if self.exchange is not None:
            self.exchange.pause()

    def resume_writing(self) -> None:
        self._is_paused = False
        if self.exchange is not None:
            self.exchange.resume()

    def attach(self, exchange: Running) -> None:
        """``exchange`` runs from here on."""
        self.exchange = exchange
        if self._is_paused:
            exchange.pause()

    def connection_lost(self, exc: Exception | None) -> None:
        del exc  # A reset and a close are the same to us: the client is gone.
        self.transport = None
        self._reader.close()
        self._gateway.connections.discard(self)
        exchange, self.exchange = self.exchange, None
        if exchange is not None:
            exchange.client_left()
