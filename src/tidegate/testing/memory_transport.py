"""Two protocols wired together in memory, with the manners of TCP.

What one end writes, the other reads, later and in pieces of any size; either end may stop reading,
close (what was written still arrives) or abort (what was not delivered is lost).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

Split = Callable[[bytes], Iterable[bytes]]
"""How one write arrives: as these pieces, each a read of its own."""

HIGH_BYTES = 64 * 1024


def whole(data: bytes) -> Iterable[bytes]:
    """Every write arrives as one read."""
    return (data,)


def every(size: int) -> Split:
    """Reads of ``size`` bytes."""
    return lambda data: [data[at : at + size] for at in range(0, len(data), size)]


class MemoryTransport(asyncio.Transport):
    """One end. Made by ``memory_pair``."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, protocol: asyncio.Protocol, peername: str, split: Split
    ) -> None:
        super().__init__({"peername": (peername, 40000)})
        self._loop = loop
        self._protocol = protocol
        self._split = split
        self._peer: MemoryTransport | None = None
        self._outgoing: deque[bytes] = deque()
        self._high_bytes = HIGH_BYTES
        self._low_bytes = HIGH_BYTES // 4
        self._is_closing = False
        self._is_lost = False
        self._was_aborted = False
        self._is_reading = True
        self._is_writer_paused = False
        self._is_delivering = False

    def attach(self, peer: MemoryTransport) -> None:
        """The other end."""
        self._peer = peer

    def get_protocol(self) -> asyncio.Protocol:
        return self._protocol

    def is_closing(self) -> bool:
        return self._is_closing

    def is_reading(self) -> bool:
        return self._is_reading

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._high_bytes = HIGH_BYTES if high is None else high
        self._low_bytes = self._high_bytes // 4 if low is None else low

    def get_write_buffer_size(self) -> int:
        return sum(map(len, self._outgoing))

    def write(self, data: Any) -> None:
        if self._is_closing or not data:
            return
        self._outgoing.extend(self._split(bytes(data)))
        self.deliver_soon()
        if self.get_write_buffer_size() > self._high_bytes and not self._is_writer_paused:
            self._is_writer_paused = True
            self._protocol.pause_writing()

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        """A half-close is not modelled: the reader learns of the end when this end closes."""

    def pause_reading(self) -> None:
        self._is_reading = False

    def resume_reading(self) -> None:
        self._is_reading = True
        if self._peer is not None:
            self._peer.deliver_soon()

    def close(self) -> None:
        if not self._is_closing:
            self._is_closing = True
            self.deliver_soon()

    def abort(self) -> None:
        self._outgoing.clear()
        self._is_closing = self._was_aborted = True
        self._loop.call_soon(self.lose, None)
        if self._peer is not None:
            self._loop.call_soon(self._peer.lose, ConnectionResetError("reset by peer"))

    def deliver_soon(self) -> None:
        """Something may have become possible: a read at the other end, or the end."""
        if not self._is_delivering:
            self._is_delivering = True
            self._loop.call_soon(self._deliver)

    def _deliver(self) -> None:
        """One read, then what follows from it."""
        self._is_delivering = False
        peer = self._peer
        if peer is None or self._is_lost or self._was_aborted:
            return
        if self._outgoing:
            if not peer.is_reading() or peer.is_closing():
                return
            piece = self._outgoing.popleft()
            peer.get_protocol().data_received(piece)
            if self._is_writer_paused and self.get_write_buffer_size() <= self._low_bytes:
                self._is_writer_paused = False
                self._protocol.resume_writing()
            self.deliver_soon()
        elif self._is_closing:
            self.lose(None)
            peer.end()

    def end(self) -> None:
        """The other end closed: as with TCP, this one closes unless its protocol says otherwise."""
        if not self._is_lost and not self._protocol.eof_received():
            self._is_closing = True
            self.lose(None)

    def lose(self, error: Exception | None) -> None:
        """The connection is over at this end."""
        if not self._is_lost:
            self._is_lost = self._is_closing = True
            self._protocol.connection_lost(error)


def memory_pair(
    client: asyncio.Protocol,
    server: asyncio.Protocol,
    *,
    split: Split = whole,
    peername: str = "127.0.0.1",
) -> tuple[MemoryTransport, MemoryTransport]:
    """Connect two protocols on the running loop; the client's transport and the server's.

    ``split`` cuts what either end writes into reads. ``peername``: the client's address as the
    server sees it.
    """
    loop = asyncio.get_running_loop()
    ours = MemoryTransport(loop, client, "127.0.0.1", split)
    theirs = MemoryTransport(loop, server, peername, split)
    ours.attach(theirs)
    theirs.attach(ours)
    server.connection_made(theirs)
    client.connection_made(ours)
    return ours, theirs
