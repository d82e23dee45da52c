"""Connections to one target: those that are free, and new ones."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
from collections.abc import Awaitable, Callable

from tidegate.load.flight import Flight
from tidegate.load.heard import End
from tidegate.load.link import Link
from tidegate.load.request_text import RequestText
from tidegate.wire.tls import Tls

Dial = Callable[[Callable[[], Link]], Awaitable[Link]]
"""Opens one connection. Raises OSError, also for a failed TLS handshake."""
OUR_OWN_LIMITS = frozenset({errno.EMFILE, errno.ENFILE, errno.EADDRNOTAVAIL, errno.ENOBUFS, errno.ENOMEM})
"""No connection for want of something on this side: it was the generator that could not send."""


class LinkPool:
    """The last that became free is taken first, so that a pool that is too large goes idle at its other end."""

    def __init__(self, dial: Dial, clock: Callable[[], float]) -> None:
        self._dial = dial
        self._clock = clock
        self._idle: dict[Link, None] = {}
        self._busy: set[Link] = set()
        self._dialing: set[asyncio.Task[None]] = set()

    def send(self, flight: Flight) -> None:
        """At once where a connection is free; else over a new one, as soon as it stands."""
        idle = self._idle
        while idle:
            link = idle.popitem()[0]
            if link.is_open:
                self._busy.add(link)
                link.send(flight)
                return
        self._send_over_new(flight)

    def release(self, link: Link) -> None:
        self._busy.discard(link)
        self._idle[link] = None

    def forget(self, link: Link) -> None:
        self._busy.discard(link)
        self._idle.pop(link, None)

    def resend(self, flight: Flight) -> None:
        """Over a connection that nobody can have closed yet."""
        flight.is_resent = True
        self._send_over_new(flight)

    async def close(self) -> None:
        """End every connection, at once."""
        for task in self._dialing:
            task.cancel()
        if self._dialing:
            await asyncio.wait(self._dialing)
        for link in (*self._idle, *self._busy):
            link.abort()
        # A turn of the loop, in which the transports go.
        await asyncio.sleep(0)

    def _send_over_new(self, flight: Flight) -> None:
        task = asyncio.get_running_loop().create_task(self._open(flight))
        self._dialing.add(task)
        task.add_done_callback(self._dialing.discard)

    async def _open(self, flight: Flight) -> None:
        try:
            link = await self._dial(lambda: Link(self, self._clock))
        except OSError as error:
            if error.errno in OUR_OWN_LIMITS:
                flight.end(End.UNSENT, errno.errorcode[error.errno])
            else:
                flight.end(End.NO_CONNECTION, type(error).__name__)
            return
        if flight.is_over:
            # Its client has left meanwhile; the connection serves the next.
            self.release(link)
            return
        self._busy.add(link)
        link.send(flight)


def dialer(text: RequestText, ca_file: str | None) -> Dial:
    """The target's address is looked up once, so that no look-up is measured."""
    tls = Tls(ca_file) if text.is_tls else None
    context = tls.context if tls is not None else None
    name = text.host if tls is not None else None
    addresses: list[str] = []

    async def connect(make: Callable[[], Link], address: str) -> Link:
        loop = asyncio.get_running_loop()
        _, link = await loop.create_connection(make, address, text.port, ssl=context, server_hostname=name)
        if address != addresses[0]:
            # Such as 127.0.0.1 where localhost is ::1 first: once is enough to find that out.
            addresses.remove(address)
            addresses.insert(0, address)
        return link

    async def dial(make: Callable[[], Link]) -> Link:
        if not addresses:
            found = await asyncio.get_running_loop().getaddrinfo(text.host, text.port, type=socket.SOCK_STREAM)
            addresses[:] = dict.fromkeys(str(address[4][0]) for address in found)
        for address in addresses[:-1]:
            # Not kept for later: an exception that its own frame holds is a cycle, and nobody collects.
            with contextlib.suppress(OSError):
                return await connect(make, address)
        return await connect(make, addresses[-1])

    return dial
