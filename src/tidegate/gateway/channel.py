"""Messages between the parent and its data process, over a socket pair.

A frame is a four-byte big-endian length and one message in MessagePack. Both ends are asyncio
protocols; messages arrive in order, each once, in ``on_message``.

Ownership: each end owns its socket; closing either end ends both. Control messages are few and
always written; what can be many is held back by its sender while ``is_writable`` is False:
records by ``gateway.outbox``, readings by leaving one out.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Any, Generic, TypeVar, cast

import msgspec

from tidegate.errors import ProtocolError
from tidegate.gateway.messages import Down, Message, Up

LENGTH_BYTES = 4
LARGEST_FRAME_BYTES = 16 * 1024 * 1024
"""A frame of 128 rows is about 30 KB and a snapshot about 100 KB; anything near this is a bug."""
PAUSE_ABOVE_BYTES = 256 * 1024
"""Unread bytes above which ``is_writable`` turns False."""

In = TypeVar("In")
Out = TypeVar("Out", bound=Message)


class Channel(asyncio.Protocol, Generic[Out, In]):
    """One end. ``on_message`` gets each message; ``on_closed`` is called once, with None when the other
    end closed or with what was wrong with its bytes."""

    def __init__(
        self,
        incoming: Any,
        on_message: Callable[[In], None],
        on_closed: Callable[[Exception | None], None],
    ) -> None:
        self._decoder = msgspec.msgpack.Decoder(incoming)
        self._encoder = msgspec.msgpack.Encoder()
        self._on_message = on_message
        self._on_closed = on_closed
        self._transport: asyncio.Transport | None = None
        self._unread = bytearray()
        self._is_listening = False
        self._problem: Exception | None = None
        self.is_writable = False

    @property
    def is_open(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    def send(self, message: Out) -> bool:
        """Write ``message``; False when the other end is gone and nothing was written."""
        if self._transport is None or self._transport.is_closing():
            return False
        body = self._encoder.encode(message)
        self._transport.write(len(body).to_bytes(LENGTH_BYTES) + body)
        return True

    def listen(self) -> None:
        """Deliver messages from here on. What came before waits: its owner may not hold this object yet."""
        self._is_listening = True
        self._deliver_whole_frames()

    def close(self) -> None:
        """Close once what was sent has been written."""
        if self._transport is not None:
            self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports do not derive from asyncio.Transport, so isinstance cannot narrow.
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=PAUSE_ABOVE_BYTES)
        self.is_writable = True

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_writable = False
        self._transport = None
        self._on_closed(self._problem or exc)

    def pause_writing(self) -> None:
        self.is_writable = False

    def resume_writing(self) -> None:
        self.is_writable = True

    def data_received(self, data: bytes) -> None:
        self._unread += data
        if self._is_listening:
            self._deliver_whole_frames()

    def _deliver_whole_frames(self) -> None:
        unread = self._unread
        start = 0
        while len(unread) - start >= LENGTH_BYTES:
            end = start + LENGTH_BYTES + int.from_bytes(unread[start : start + LENGTH_BYTES])
            if end - start > LARGEST_FRAME_BYTES:
                self._fail(f"a frame of {end - start} bytes on the channel; the most is {LARGEST_FRAME_BYTES}")
                return
            if end > len(unread):
                break
            if not self._deliver(unread[start + LENGTH_BYTES : end]):
                return
            start = end
        del unread[:start]

    def _deliver(self, frame: bytearray) -> bool:
        try:
            message = self._decoder.decode(frame)
        except msgspec.MsgspecError as error:
            self._fail(f"a message that does not decode on the channel: {error}")
            return False
        self._on_message(message)
        return True

    def _fail(self, problem: str) -> None:
        self._unread.clear()
        self._problem = ProtocolError(problem)
        if self._transport is not None:
            self._transport.abort()


ParentEnd = Channel[Down, Up]
ChildEnd = Channel[Up, Down]


async def _attach(channel: ParentEnd | ChildEnd, sock: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    await loop.create_unix_connection(lambda: channel, sock=sock)
    # Runs after the awaiting code has gone on, so after it has stored the channel.
    loop.call_soon(channel.listen)


async def open_parent_end(
    sock: socket.socket,
    on_message: Callable[[Up], None],
    on_closed: Callable[[Exception | None], None],
) -> ParentEnd:
    """The parent's end of ``socket.socketpair()``; it owns ``sock`` from here on."""
    channel: ParentEnd = Channel(Up, on_message, on_closed)
    await _attach(channel, sock)
    return channel


async def open_child_end(
    sock: socket.socket,
    on_message: Callable[[Down], None],
    on_closed: Callable[[Exception | None], None],
) -> ChildEnd:
    """The data process's end; ``sock`` comes from ``socket.socket(fileno=fd)``."""
    channel: ChildEnd = Channel(Down, on_message, on_closed)
    await _attach(channel, sock)
    return channel
