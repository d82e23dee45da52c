"""An OpenAI-compatible engine that misbehaves on command: a process of its own, without a model.

    python -m tidegate.testing.faulty_upstream [--port 0] [--slots 8] [--pace-s 0.02] [--first-s 0.02]
                                               [--kind vllm|openai] [--model m]

It prints one line of JSON, ``{"url": …, "control": …}``, and serves until it is ended. Each of its slots writes one
answer at a time, a token every ``pace_s`` after ``first_s``; further requests wait in order. The text is the same for
every request: ``w0 w1 w2 …``, as many words as ``max_tokens`` says (16 where it says nothing); of a prompt that ends
with ``w4 ``, it is what follows. The control port takes

    PUT /fault   {"fault": "hang"}      one of ``Fault``; answers that run meet it at their next token
    GET /log                            every request for an answer: when it came, what was sent of it, how it ended

Times in the log are the machine's monotonic clock, so that they can be compared with those of other processes. Faults
of the whole process (frozen, killed) are its owner's signals: see ``UpstreamProcess``.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import socket
import struct
import time
from collections import deque
from dataclasses import asdict
from typing import cast

from tidegate.errors import ProtocolError
from tidegate.testing.faults import AFTER_TOKENS, SLOW_FACTOR, Fault
from tidegate.testing.openai_shapes import (
    chunk,
    error,
    event_text,
    object_of,
    wanted_tokens,
    whole,
    whole_text,
    words_before,
)
from tidegate.testing.upstream_shape import Asked, Shape
from tidegate.wire.requests import Incoming, RequestReader

LOGGED = 200_000
"""Requests kept; the oldest go first."""
ANSWER_PATHS = (b"/v1/chat/completions", b"/v1/completions")
LOOK_AGAIN_S = 0.01
"""How often an answer that hangs or stalls looks whether that is over."""
STREAM_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
GARBLED = b'data: {"choices":[{"delta":{"content":"\xff\xfe\x00\n\n'
AT_ONCE = {
    Fault.ERROR_500: (b"500 Internal Server Error", b"", "the engine broke"),
    Fault.BUSY_429: (b"429 Too Many Requests", b"retry-after: 1\r\n", "the engine is busy"),
}
HELD = frozenset({Fault.HANG, Fault.STALL})
ENDED = frozenset({Fault.CUT, Fault.RESET, Fault.ERROR_EVENT})


class Upstream:
    """All connections of one engine. Use inside a running loop."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.fault = Fault.NONE
        self.running: set[Answer] = set()
        self.waiting: deque[Answer] = deque()
        self.log: deque[Asked] = deque(maxlen=LOGGED)
        self.connections: set[Connection] = set()
        self._server: asyncio.Server | None = None
        self._port = 0

    async def listen(self, port: int) -> str:
        """Take requests; where."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: Connection(self), "127.0.0.1", port or self._port)
        self._port = self._server.sockets[0].getsockname()[1]
        return f"http://127.0.0.1:{self._port}"

    def close(self) -> None:
        """Take nothing more, and reset what is open."""
        if self._server is not None:
            self._server.close()
            self._server = None
        for connection in tuple(self.connections):
            connection.reset()

    async def take(self, fault: Fault) -> None:
        """Misbehave so from here on."""
        self.fault = fault
        if fault is Fault.REFUSE:
            self.close()
        elif self._server is None and self._port:
            await self.listen(self._port)

    def admit(self, answer: Answer) -> None:
        self.waiting.append(answer)
        self.fill()

    def forget(self, answer: Answer) -> None:
        """It is over, or its client is gone."""
        self.running.discard(answer)
        if answer in self.waiting:
            self.waiting.remove(answer)
        self.fill()

    def fill(self) -> None:
        while self.waiting and len(self.running) < self.shape.slots:
            answer = self.waiting.popleft()
            self.running.add(answer)
            answer.begin()

    def page(self) -> bytes:
        """Its figures as vLLM shows them."""
        lines = [
            f'vllm:num_requests_running{{engine="0"}} {len(self.running)}',
            f'vllm:num_requests_waiting{{engine="0"}} {len(self.waiting)}',
        ]
        return "\n".join([*lines, ""]).encode()


class Connection(asyncio.Protocol):
    """One client of the engine; answers one request after the other."""

    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream
        self._reader = RequestReader(1 << 20, 1 << 28)
        self.transport: asyncio.Transport | None = None
        self._answer: Answer | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports do not derive from asyncio.Transport, so isinstance cannot narrow.
        self.transport = cast(asyncio.Transport, transport)
        self._upstream.connections.add(self)

    def data_received(self, data: bytes) -> None:
        try:
            self._reader.feed(data)
        except ProtocolError:
            self.close()
            return
        self._take_next()

    def _take_next(self) -> None:
        while self._answer is None and self._reader.ready:
            self._take(self._reader.ready.popleft())

    def _take(self, incoming: Incoming) -> None:
        path = incoming.target.partition(b"?")[0]
        if path in ANSWER_PATHS:
            self._answer = Answer(self._upstream, self, incoming)
            self._upstream.admit(self._answer)
        elif path in (b"/health", b"/v1/models"):
            entry = {"id": self._upstream.shape.model, "object": "model"}
            self.send(whole(b"200 OK", json.dumps({"object": "list", "data": [entry]}).encode()))
        elif path == b"/metrics" and self._upstream.shape.kind == "vllm":
            self.send(whole(b"200 OK", self._upstream.page(), content_type=b"text/plain"))
        else:
            self.send(whole(b"404 Not Found", error("there is no such path")))

    def send(self, data: bytes) -> None:
        if self.transport is not None:
            self.transport.write(data)

    def answered(self) -> None:
        """The answer is complete; the next request can begin."""
        self._answer = None
        self._take_next()

    def close(self) -> None:
        if self.transport is not None:
            self.transport.close()

    def reset(self) -> None:
        """End with RST instead of FIN."""
        transport = self.transport
        if transport is None:
            return
        sock = transport.get_extra_info("socket")
        if sock is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        del exc  # A reset and a close are the same here: the client is gone.
        self.transport = None
        self._reader.close()
        self._upstream.connections.discard(self)
        if self._answer is not None:
            self._answer.over("left")
            self._answer = None


class Answer:
    """One request for an answer, from its arrival to its end."""

    def __init__(self, upstream: Upstream, connection: Connection, incoming: Incoming) -> None:
        self._upstream = upstream
        self._connection = connection
        body = object_of(incoming.body)
        self._streams = body.get("stream") is True
        self._is_chat = incoming.target.startswith(b"/v1/chat")
        self._wanted = wanted_tokens(body)
        self._first = words_before(body)
        self._has_head = False
        self._timer: asyncio.TimerHandle | None = None
        headers = tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in incoming.headers)
        self.asked = Asked(dict(headers).get("x-request-id", ""), time.monotonic(), headers=headers)
        upstream.log.append(self.asked)

    def begin(self) -> None:
        """A slot is there."""
        self.asked.began_at = time.monotonic()
        fault = self._upstream.fault
        if fault in AT_ONCE:
            status, lines, text = AT_ONCE[fault]
            self._whole(fault.value, whole(status, error(text), lines))
        elif fault is Fault.CLOSE:
            self._end_connection(fault)
        elif fault is Fault.GARBAGE_HTTP:
            self._connection.send(b"\x16\x03\x01\x02\x00 this is no HTTP\r\n\r\n")
            self._end_connection(fault)
        elif fault is Fault.ENDLESS_HEAD:
            self._connection.send(b"HTTP/1.1 200 OK\r\n")
            self._lengthen_head()
        else:
            self._later(self._upstream.shape.first_s)

    def over(self, end: str) -> None:
        """Free the slot; nothing more is sent."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self.asked.end:
            self.asked.end, self.asked.ended_at = end, time.monotonic()
        self._upstream.forget(self)

    def _later(self, seconds: float) -> None:
        factor = SLOW_FACTOR if self._upstream.fault is Fault.SLOW else 1.0
        self._timer = asyncio.get_running_loop().call_later(seconds * factor, self._step)

    def _step(self) -> None:
        fault, asked = self._upstream.fault, self.asked
        if fault is Fault.HANG or (fault is Fault.STALL and (asked.tokens >= AFTER_TOKENS or not self._streams)):
            self._timer = asyncio.get_running_loop().call_later(LOOK_AGAIN_S, self._step)
            return
        if fault in ENDED and asked.tokens >= min(AFTER_TOKENS, self._wanted - 1):
            self._end_by(fault)
            return
        asked.tokens += 1
        if self._streams:
            self._send_token(asked.tokens - 1, is_garbled=fault is Fault.GARBAGE_BODY)
        if asked.tokens < self._wanted:
            self._later(self._upstream.shape.pace_s)
        elif self._streams:
            self._whole("done", chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n")
        elif fault is Fault.GARBAGE_BODY:
            self._whole(fault.value, whole(b"200 OK", self._text()[:-9] + b"\xff\x00"))
        else:
            self._whole("done", whole(b"200 OK", self._text()))

    def _send_token(self, number: int, *, is_garbled: bool) -> None:
        data = GARBLED if is_garbled else b"data: %b\n\n" % self._event(number)
        self._connection.send(chunk(data) if self._has_head else STREAM_HEAD + chunk(data))
        self._has_head = True

    def _event(self, number: int) -> bytes:
        is_last = number + 1 == self._wanted
        return event_text(
            self._upstream.shape.model, f"w{self._first + number} ", is_chat=self._is_chat, is_last=is_last
        )

    def _text(self) -> bytes:
        return whole_text(self._upstream.shape.model, self._first, self._wanted, is_chat=self._is_chat)

    def _end_by(self, fault: Fault) -> None:
        """In the middle of the answer."""
        if fault is Fault.ERROR_EVENT:
            event = b"data: %b\n\n" % error("the engine broke in the middle")
            tail = chunk(event + b"data: [DONE]\n\n") + b"0\r\n\r\n"
            head = b"" if self._has_head else STREAM_HEAD
            self._whole(fault.value, head + tail if self._streams else whole(b"500 Broken", error("it broke")))
            return
        if not self._streams:
            answer = whole(b"200 OK", self._text())
            self._connection.send(answer[: -len(answer) // 3])
        self._end_connection(fault)

    def _end_connection(self, fault: Fault) -> None:
        connection = self._connection
        self.over(fault.value)
        if fault is Fault.RESET:
            # A reset discards what was not sent yet: the answer's beginning shall arrive before it.
            asyncio.get_running_loop().call_later(LOOK_AGAIN_S, connection.reset)
        else:
            connection.close()

    def _lengthen_head(self) -> None:
        self._connection.send(b"x-padding: %b\r\n" % (b"a" * 1000))
        self._timer = asyncio.get_running_loop().call_later(LOOK_AGAIN_S, self._lengthen_head)

    def _whole(self, end: str, data: bytes) -> None:
        """Send the last there is."""
        self._connection.send(data)
        self.over(end)
        self._connection.answered()


class Control(asyncio.Protocol):
    """One caller of the control port."""

    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream
        self._reader = RequestReader(1 << 16, 1 << 20)
        self._transport: asyncio.Transport | None = None
        self._task: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        try:
            self._reader.feed(data)
        except ProtocolError:
            self._answer(b"400 Bad Request", b"{}")
            return
        while self._reader.ready:
            self._task = asyncio.get_running_loop().create_task(self._obey(self._reader.ready.popleft()))

    async def _obey(self, incoming: Incoming) -> None:
        if incoming.method == b"GET" and incoming.target == b"/log":
            self._answer(b"200 OK", json.dumps([asdict(each) for each in self._upstream.log]).encode())
            return
        name = str(object_of(incoming.body).get("fault"))
        if incoming.target != b"/fault" or name not in [*Fault]:
            known = ", ".join(Fault)
            self._answer(
                b"400 Bad Request", error(f'say PUT /fault {{"fault": NAME}} with one of {known}; or GET /log')
            )
            return
        await self._upstream.take(Fault(name))
        self._answer(b"200 OK", json.dumps({"fault": name}).encode())

    def _answer(self, status: bytes, body: bytes) -> None:
        if self._transport is not None:
            self._transport.write(whole(status, body, b"connection: close\r\n"))
            self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self._transport = None
        self._reader.close()


async def serve(shape: Shape, port: int) -> None:
    """Run until the process is ended."""
    upstream = Upstream(shape)
    url = await upstream.listen(port)
    control = await asyncio.get_running_loop().create_server(lambda: Control(upstream), "127.0.0.1", 0)
    control_url = f"http://127.0.0.1:{control.sockets[0].getsockname()[1]}"
    print(json.dumps({"url": url, "control": control_url}), flush=True)  # noqa: T201 - how its owner learns where it is
    async with control:
        await control.serve_forever()


def main() -> None:
    parser = argparse.ArgumentParser(description="an engine without a model that misbehaves on command")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--slots", type=int, default=8)
    parser.add_argument("--pace-s", type=float, default=0.02)
    parser.add_argument("--first-s", type=float, default=0.02)
    parser.add_argument("--kind", choices=("vllm", "openai"), default="vllm")
    parser.add_argument("--model", default="m")
    given = parser.parse_args()
    asyncio.run(serve(Shape(given.slots, given.pace_s, given.first_s, given.kind, given.model), given.port))


if __name__ == "__main__":
    main()
