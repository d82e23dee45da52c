"""A server in memory that does what a test says, and how a sender comes to it. For the virtual loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, cast

from tests.load.asks_of_a_test import ask
from tidegate.load.link import Link
from tidegate.load.link_pool import Dial
from tidegate.load.sample import Sample
from tidegate.load.sender import Sender
from tidegate.load.target import Target
from tidegate.testing.memory_transport import Split, memory_pair, whole
from tidegate.testing.openai_shapes import chunk
from tidegate.testing.openai_shapes import whole as whole_answer
from tidegate.wire.requests import Incoming, RequestReader

TARGET = Target(name="t", url="http://server:8000/v1", model="m", headers=(("authorization", "Bearer k"),))
STREAM_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n%btransfer-encoding: chunked\r\n\r\n"
DONE = b"data: [DONE]\n\n"
END = b"0\r\n\r\n"
CLOSE = None
Step = tuple[float, bytes | None]
"""After so many seconds these bytes; None: the connection ends."""
Script = Callable[[int, Incoming], Sequence[Step]]
"""What follows the n-th request, of all connections together."""


def event(text: str, finish: str = "null") -> bytes:
    return b'data: {"choices":[{"index":0,"delta":{"content":"%b"},"finish_reason":%b}]}\n\n' % (
        text.encode(),
        finish.encode(),
    )


def stream(*steps: tuple[float, bytes], lines: bytes = b"") -> list[Step]:
    """A stream that brings each of these pieces after so many seconds, and its end with the last."""
    made: list[Step] = [(delay, chunk(data)) for delay, data in steps]
    made[0] = made[0][0], STREAM_HEAD % lines + cast(bytes, made[0][1])
    made[-1] = made[-1][0], cast(bytes, made[-1][1]) + chunk(DONE) + END
    return made


def words(number: int, pace_s: float = 0.01) -> list[Step]:
    """A plain stream of so many words."""
    return stream(*((pace_s, event(f"w{index} ")) for index in range(number - 1)), (pace_s, event("end", '"stop"')))


def refused(status: bytes, body: bytes) -> list[Step]:
    return [(0.0, whole_answer(status, body))]


class ScriptedServer:
    """All connections to it. ``requests`` has what was asked."""

    def __init__(self, script: Script, split: Split = whole, connect_s: float = 0.0) -> None:
        self.script = script
        self.split = split
        self.connect_s = connect_s
        self.requests: list[Incoming] = []
        self.connections: list[ScriptedConnection] = []

    async def dial(self, make: Callable[[], Link]) -> Link:
        if self.connect_s:
            await asyncio.sleep(self.connect_s)
        link, connection = make(), ScriptedConnection(self)
        memory_pair(link, connection, split=self.split)
        self.connections.append(connection)
        return link

    def sender(self, dial: Dial | None = None, clock: Callable[[], float] | None = None) -> Sender:
        """On the running virtual loop's clock, which is also the samples'."""
        clock = clock or asyncio.get_running_loop().time
        return Sender(TARGET, 0.0, worker=3, clock=clock, dial=dial or self.dial)


class ScriptedConnection(asyncio.Protocol):
    def __init__(self, server: ScriptedServer) -> None:
        self._server = server
        self._reader = RequestReader(1 << 16, 1 << 20)
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self.transport = None
        self._reader.close()

    def data_received(self, data: bytes) -> None:
        self._reader.feed(data)
        while self._reader.ready:
            request = self._reader.ready.popleft()
            self._server.requests.append(request)
            self._play(self._server.script(len(self._server.requests) - 1, request))

    def _play(self, steps: Sequence[Step]) -> None:
        loop, after_s = asyncio.get_running_loop(), 0.0
        for delay, data in steps:
            after_s += delay
            loop.call_later(after_s, self._do, data)

    def _do(self, data: bytes | None) -> None:
        if self.transport is None:
            return
        if data is None:
            self.transport.close()
        else:
            self.transport.write(data)


async def one(script: Script, split: Split = whole, **fields: Any) -> Sample:
    """What becomes of one ask."""
    sender = ScriptedServer(script, split).sender()
    try:
        return await sender.ask(ask(**fields), "phase")
    finally:
        await sender.close()
