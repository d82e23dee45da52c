"""One connection through a fault proxy: two directions, each with its delay."""

from __future__ import annotations

import asyncio
import contextlib
import random
import socket
import struct
from collections.abc import Callable

from tidegate.load.drills.impairment import NOTHING, RETRANSMISSION_S, Cut, Impairment, Releases

READ_BYTES = 65536
MOST_PIECES = 256
"""Under way in one direction; beyond it the sender is not read, as a full window would do."""
LOOK_AGAIN_S = 0.01
"""How often a stalled direction looks whether that is over."""


class Line:
    """What every passage of one proxy obeys. ``loses_packets``: loss is somebody else's work, below the streams."""

    def __init__(self, seed: int, *, loses_packets: bool = False) -> None:
        self.impairment = NOTHING
        self.random = random.Random(seed)  # noqa: S311 - a fault that can be repeated, no secret
        self.loses_packets = loses_packets
        self.resets = 0

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

    def __init__(self, line: Line, client: Ends, server: Ends, on_passed: Callable[[bytes], None]) -> None:
        self._line = line
        self._client = client
        self._server = server
        self._on_passed = on_passed
        """Told what has gone on to the server, in order."""

    async def run(self) -> None:
        try:
            async with asyncio.TaskGroup() as both:
                both.create_task(self._carry(self._client, self._server, self._on_passed, is_answer=False))
                both.create_task(self._carry(self._server, self._client, None, is_answer=True))
        except* OSError:
            self.reset()
        finally:
            self._client.close()
            self._server.close()

    def reset(self) -> None:
        """Both, with RST."""
        self._client.reset()
        self._server.reset()

    async def _carry(
        self, source: Ends, sink: Ends, on_passed: Callable[[bytes], None] | None, *, is_answer: bool
    ) -> None:
        pieces: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(MOST_PIECES)
        async with asyncio.TaskGroup() as both:
            both.create_task(self._take(source, pieces))
            both.create_task(self._give(sink, pieces, on_passed, is_answer=is_answer))

    async def _take(self, source: Ends, pieces: asyncio.Queue[tuple[float, bytes]]) -> None:
        loop, releases = asyncio.get_running_loop(), Releases()
        piece = b"-"
        while piece:
            piece = await source.reader.read(READ_BYTES)
            await pieces.put((self._line.released_at(releases, loop.time(), len(piece)), piece))

    async def _give(
        self,
        sink: Ends,
        pieces: asyncio.Queue[tuple[float, bytes]],
        on_passed: Callable[[bytes], None] | None,
        *,
        is_answer: bool,
    ) -> None:
        loop, line, due = asyncio.get_running_loop(), self._line, 0.0
        while True:
            at, piece = await pieces.get()
            due = max(due, at)
            while loop.time() < due or line.impairment.cut is Cut.STALL:
                await asyncio.sleep(max(LOOK_AGAIN_S, due - loop.time()))
            if is_answer and line.impairment.cut is Cut.HALF_OPEN:
                await self._lose_the_rest(pieces)
                return
            if piece and line.resets_now():
                line.resets += 1
                raise ConnectionResetError("the fault proxy resets it")
            if not piece:
                sink.end()
                return
            sink.writer.write(piece)
            await sink.writer.drain()
            if on_passed is not None:
                on_passed(piece)

    async def _lose_the_rest(self, pieces: asyncio.Queue[tuple[float, bytes]]) -> None:
        """Until the server has ended; then stay, so that the client is not told."""
        while (await pieces.get())[1]:
            pass
        while self._line.impairment.cut is Cut.HALF_OPEN:
            await asyncio.sleep(LOOK_AGAIN_S)
        raise ConnectionResetError("what was lost of this answer cannot come any more")


class Ends:
    """One socket, to be read and written."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

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
