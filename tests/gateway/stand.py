"""A gateway between scripted clients and scripted engines, in memory and in virtual time."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, cast

from tests.gateway.fake_tokenizers import FakeSpawn
from tidegate.gateway.client_connection import ClientConnection
from tidegate.gateway.door import Door
from tidegate.gateway.driver import Driver
from tidegate.gateway.engine_connection import EngineConnection
from tidegate.gateway.exactness import Counter
from tidegate.gateway.gateway import Gateway, Surroundings
from tidegate.gateway.journal import Journal
from tidegate.gateway.settings import Endpoint, Settings
from tidegate.gateway.tally import Tally
from tidegate.gateway.ticker import Ticker
from tidegate.gateway.tokenizer_pool import TokenizerPool
from tidegate.lens.metrics import Metrics
from tidegate.lens.row import Row
from tidegate.policy.decisions import Decision
from tidegate.policy.path import Path
from tidegate.policy.path_config import PathConfig
from tidegate.policy.reading import Capacity, ReplicaConfig
from tidegate.policy.request import Request
from tidegate.testing.memory_transport import MemoryTransport, Split, memory_pair, whole
from tidegate.wire.requests import Incoming, RequestReader
from tidegate.wire.responses import ResponseReader

Step = bytes | float | str
"""Of an engine's script: bytes to send, seconds to wait, "close" or "abort"."""
Script = Callable[[Incoming], list[Step]]


def json_answer(body: dict[str, Any], status: str = "200 OK", headers: str = "") -> bytes:
    text = json.dumps(body).encode()
    head = f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\n{headers}content-length: {len(text)}\r\n\r\n"
    return head.encode() + text


STREAM_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
STREAM_END = b"0\r\n\r\n"
DONE = b"data: [DONE]\n\n"


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def event(text: str) -> bytes:
    return b"data: " + json.dumps({"choices": [{"index": 0, "delta": {"content": text}}]}).encode() + b"\n\n"


def usage_event(prompt_tokens: int, completion_tokens: int) -> bytes:
    usage = {"prompt_tokens": prompt_tokens, "completion_tokens": completion_tokens}
    return b"data: " + json.dumps({"choices": [], "usage": usage}).encode() + b"\n\n"


WHOLE = json_answer({"choices": [{"text": "hi"}], "usage": {"prompt_tokens": 7, "completion_tokens": 3}})


def stream_of(*words: str) -> list[Step]:
    return [STREAM_HEAD, *(chunk(event(word)) for word in words), chunk(DONE) + STREAM_END]


class Engine:
    """One scripted engine server; each connection to it runs scripts in order."""

    def __init__(self, script: Script | list[Step], split: Split = whole) -> None:
        self.script: Script = script if callable(script) else lambda _: script
        self.split = split
        self.requests: list[Incoming] = []
        self.connections: list[EngineEnd] = []
        self.refuses = False
        self.dial_s = 0.0

    @property
    def left(self) -> int:
        """Requests whose connection the gateway gave up before the script had ended."""
        return sum(end.was_left for end in self.connections)


class EngineEnd(asyncio.Protocol):
    """The engine's end of one connection."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.reader = RequestReader(1 << 16, 1 << 26)
        self.transport: MemoryTransport | None = None
        self.steps: list[Step] = []
        self.timer: asyncio.TimerHandle | None = None
        self.was_left = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, MemoryTransport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.reader.feed(data)
        while self.reader.ready:
            request = self.reader.ready.popleft()
            self.engine.requests.append(request)
            self.steps = list(self.engine.script(request))
            self.play()

    def play(self) -> None:
        self.timer = None
        while self.steps and self.transport is not None:
            step = self.steps.pop(0)
            if isinstance(step, float):
                self.timer = asyncio.get_running_loop().call_later(step, self.play)
                return
            if step == "close":
                self.transport.close()
            elif step == "abort":
                self.transport.abort()
            else:
                assert isinstance(step, bytes)
                self.transport.write(step)

    def connection_lost(self, exc: Exception | None) -> None:
        self.was_left = bool(self.steps) or self.timer is not None
        if self.timer is not None:
            self.timer.cancel()
        self.transport = None
        self.reader.close()


class ClientEnd(asyncio.Protocol):
    """A client that keeps everything it gets."""

    def __init__(self) -> None:
        self.transport: MemoryTransport | None = None
        self.raw = b""
        self.answers: list[Got] = []
        self.is_closed = False
        self._reader = ResponseReader()
        self._body = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, MemoryTransport)
        self.transport = transport

    def send(self, data: bytes) -> None:
        assert self.transport is not None
        self.transport.write(data)

    def data_received(self, data: bytes) -> None:
        self.raw += data
        # llhttp reports only the last of several answers in one read, so small reads are fed byte by byte.
        size = 1 if len(data) < 4096 else len(data)
        for at in range(0, len(data), size):
            self._reader.feed(data[at : at + size])
            self._body += b"".join(self._reader.pieces)
            self._reader.pieces.clear()
            if self._reader.is_complete:
                self._take()

    def _take(self) -> None:
        self.answers.append(Got(self._reader.status, dict(self._reader.headers), self._body))
        self._body = b""
        self._reader.start()

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_closed = True
        if self._reader.has_head and self._reader.finish():
            self._take()
        self._reader.close()


class Got:
    """One answer as a client has it."""

    def __init__(self, status: int, headers: dict[bytes, bytes], body: bytes) -> None:
        self.status = status
        self.headers = headers
        self.body = body

    @property
    def error(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.body)["error"]
        return found


def post(body: dict[str, Any] | bytes, path: str = "/v1/chat/completions", headers: str = "") -> bytes:
    text = body if isinstance(body, bytes) else json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nhost: gate\r\ncontent-type: application/json\r\n{headers}"
    return f"{head}content-length: {len(text)}\r\n\r\n".encode() + text


def get(path: str, headers: str = "") -> bytes:
    return f"GET {path} HTTP/1.1\r\nhost: gate\r\n{headers}\r\n".encode()


def chat(**fields: Any) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": "hello"}], "max_tokens": 16, **fields}


class NotedPath:
    """Keeps what was offered; a ``Door``."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.offered: list[Request] = []

    def offer(self, request: Request, now: float) -> Decision:
        self.offered.append(request)
        return self._path.offer(request, now)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._path, name)


class Stand:
    """The gateway with its surroundings. Use inside a running (virtual) loop."""

    def __init__(self, engines: dict[str, Engine], settings: Settings) -> None:
        self.loop = asyncio.get_running_loop()
        self.engines = engines
        self.rows: list[Row] = []
        self.polled: list[str] = []
        self.called_back: list[tuple[str, str, bytes]] = []
        self.counters: dict[str, Counter] = {}
        """By replica name; an endpoint of a kind that counts is asked here."""
        self.tokenizers = FakeSpawn()
        """Answers for the processes that hold tokenizer files."""
        self.logged: list[str] = []
        self.metrics = Metrics(["m"], settings.path.classes.classes, 0.0)
        self.path = Path(settings.path, self.loop.time())
        self.noted = NotedPath(self.path)
        self.driver = Driver(cast("Door", self.noted), self.loop)
        draws = itertools.count(0x9E3779B97F4A7C15, 0x9E3779B97F4A7C15)
        around = Surroundings(
            loop=self.loop,
            driver=self.driver,
            journal=Journal(self.metrics, self.rows.append),
            dial=self.dial,
            draws=lambda: next(draws) % 2**64,
            poll_soon=self.polled.append,
            tally=Tally(
                lambda endpoint: self.counters[endpoint.name],
                TokenizerPool(self.tokenizers),
                lambda level, text: self.logged.append(f"{level}: {text}"),
            ),
            call_back=lambda url, message_id, body: self.called_back.append((url, message_id, body)),
        )
        self.gateway = Gateway(settings, around)
        self.ticker = Ticker(self.gateway, self.loop, settings.timers.tick_s, self.metrics.observe_lag)

    @property
    def source_of_last_request(self) -> str | None:
        return self.noted.offered[-1].source

    async def dial(self, endpoint: Endpoint, make: Callable[[], EngineConnection]) -> EngineConnection:
        engine = self.engines[endpoint.name]
        await asyncio.sleep(engine.dial_s)
        if engine.refuses:
            raise ConnectionRefusedError(f"{endpoint.name} refuses")
        connection, end = make(), EngineEnd(engine)
        engine.connections.append(end)
        memory_pair(connection, end, split=engine.split)
        return connection

    def client(self, split: Split = whole, peername: str = "127.0.0.1") -> ClientEnd:
        client = ClientEnd()
        memory_pair(client, ClientConnection(self.gateway), split=split, peername=peername)
        return client

    async def ask(self, request: bytes, within_s: float = 60.0) -> Got:
        """Send one request on a connection of its own and wait for its answer, or for the connection's end."""
        client = self.client()
        client.send(request)
        await self.until(lambda: bool(client.answers) or client.is_closed, within_s)
        assert client.answers, f"the connection closed without an answer: {client.raw!r}"
        return client.answers[0]

    async def until(self, holds: Callable[[], bool], within_s: float = 60.0) -> None:
        ends_at = self.loop.time() + within_s
        while not holds():
            assert self.loop.time() < ends_at, "it did not come to pass in time"
            await asyncio.sleep(0.01)

    def reload(self, names: list[str], *endpoints: Endpoint, **changes: Any) -> None:
        """Replicas ``names`` at ``endpoints``, in place of those before."""
        settings = settings_for({name: self.engines[name] for name in names}, endpoints=endpoints, **changes)
        self.gateway.reconfigure(settings)
        self.driver.apply(settings.path)

    @property
    def permits(self) -> int:
        found = self.path.view(self.loop.time())["permits"]
        assert isinstance(found, int)
        return found


def settings_for(engines: dict[str, Engine], **changes: Any) -> Settings:
    """Replicas of the model ``m``, one per engine; ``capacity`` and ``path`` may be given apart, and by engine the
    ``upstreams`` of those that serve another model."""
    capacity, upstreams = changes.pop("capacity", Capacity(sequences=64)), changes.pop("upstreams", {})
    replicas = tuple(ReplicaConfig(name=name, upstream=upstreams.get(name, "m"), capacity=capacity) for name in engines)
    path = changes.pop("path", PathConfig())
    return Settings(
        path=replace(path, replicas=replicas),
        endpoints=changes.pop("endpoints", tuple(Endpoint(name=name, host="127.0.0.1", port=9000) for name in engines)),
        **changes,
    )


@contextmanager
def stand_for(engines: dict[str, Engine] | Engine, **changes: Any) -> Iterator[Stand]:
    """A running gateway, which at the end must have nothing left open."""
    named = engines if isinstance(engines, dict) else {"r1": engines}
    stand = Stand(named, settings_for(named, **changes))
    stand.ticker.start()
    try:
        yield stand
    finally:
        stand.ticker.stop()
        stand.gateway.stop()
        stand.driver.stop()
