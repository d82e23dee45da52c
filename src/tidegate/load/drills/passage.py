"""One connection through a fault proxy: two directions, each with its delay."""

from __future__ import annotations

import asyncio
import contextlib
import random
import socket
import struct
from typing import NoReturn

from tidegate.load.drills.impairment import NOTHING, RETRANSMISSION_S, Cut, Impairment, Releases
from tidegate.load.drills.wiretap import Wiretap

READ_BYTES = 65536
MOST_PIECES = 256
"""Under way in one direction; beyond it the sender is not read, as a full window would do."""

Pieces = asyncio.Queue[tuple[float, bytes]]
"""When each goes on; an empty one is the end."""


class Line:
    """What every passage of one proxy obeys."""

    def __init__(self, seed: int) -> None:
        self.impairment = NOTHING
        self.moves = asyncio.Event()
        """Set while nothing is stalled."""
        self.tells = asyncio.Event()
        """Set while answers go through."""
        self.take(NOTHING)
        self.random = random.Random(seed)  # noqa: S311 - a fault that can be repeated, no secret
        self.loses_packets = False
        """Delay and loss are somebody else's work, below the streams."""
        self.resets = 0

    def take(self, impairment: Impairment) -> None:
        """From here on, also for what is under way."""
        self.impairment = impairment
        for event, cut in ((self.moves, Cut.STALL), (self.tells, Cut.HALF_OPEN)):
            if impairment.cut is cut:
                event.clear()
            else:
                event.set()

    def released_at(self, releases: Releases, now: float, size_bytes: int) -> float:
        """When this piece goes on."""
        if self.loses_packets:
            return now
        impairment = self.impairment
        at = releases.at(impairment, now, size_bytes, self.random.random())
        return at + RETRANSMISSION_S if self._draws(impairment.loss_share) else at

    def resets_now(self) -> bool:
        return self._draws(self.impairment.reset_share)

    def _draws(self, share: float) -> bool:
        return share > 0.0 and self.random.random() < share


class Passage:
    """From ``client`` to ``server`` and back, until both directions have ended or one is reset."""

    def __init__(self, line: Line, client: Ends, server: Ends, tap: Wiretap) -> None:
        self._line = line
        self._client = client
        self._server = server
        self._tap = tap

    async def run(self) -> None:
        try:
            async with asyncio.TaskGroup() as both:
                both.create_task(self._carry(self._client, self._server, is_answer=False))
                both.create_task(self._carry(self._server, self._client, is_answer=True))
        except* OSError:
            self._client.reset()
            self._server.reset()
        finally:
            self._client.close()
            self._server.close()
            self._tap.close()

    async def _carry(self, source: Ends, sink: Ends, *, is_answer: bool) -> None:
        pieces: Pieces = asyncio.Queue(MOST_PIECES)
        async with asyncio.TaskGroup() as both:
            both.create_task(self._take(source, pieces, is_answer=is_answer))
            both.create_task(self._give(sink, pieces, is_answer=is_answer))

    async def _take(self, source: Ends, pieces: Pieces, *, is_answer: bool) -> None:
        loop, releases = asyncio.get_running_loop(), Releases()
        while True:
            piece = await source.read()
            if is_answer:
                self._tap.answer(piece)
            await pieces.put((self._line.released_at(releases, loop.time(), len(piece)), piece))
            if not piece:
                return

    async def _give(self, sink: Ends, pieces: Pieces, *, is_answer: bool) -> None:
        loop, line, due = asyncio.get_running_loop(), self._line, 0.0
        while True:
            at, piece = await pieces.get()
            due = max(due, at)
            if due > loop.time():
                await asyncio.sleep(due - loop.time())
            await line.moves.wait()
            if is_answer and not line.tells.is_set():
                await self._lose_the_rest(pieces)
            if piece and line.resets_now():
                line.resets += 1
                raise ConnectionResetError("the fault proxy resets it")
            if not piece:
                sink.end()
                return
            if not is_answer:
                self._tap.ask(piece)
            sink.writer.write(piece)
            await sink.writer.drain()

    async def _lose_the_rest(self, pieces: Pieces) -> NoReturn:
        """Until the server has ended; then stay, so that the client is not told."""
        while (await pieces.get())[1]:
            pass
        await self._line.tells.wait()
        raise ConnectionResetError("what was lost of this answer cannot come any more")


class Ends:
    """One socket, to be read and written."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.opening = b""
        """What was read of it before it was passed on."""

    async def read(self) -> bytes:
        """Nothing at its end. Raises OSError."""
        opening, self.opening = self.opening, b""
        return opening or await self.reader.read(READ_BYTES)

    def end(self) -> None:
        """Nothing more will be written."""
        with contextlib.suppress(OSError):
            self.writer.write_eof()

    def close(self) -> None:
        self.writer.close()

    def reset(self) -> None:
        """End with RST instead of FIN."""
        sock = self.writer.get_extra_info("socket")
        if sock is not None and sock.fileno() >= 0:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()
