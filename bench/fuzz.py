"""Hostile requests against a real data process, and hostile engines behind it.

    python bench/fuzz.py [--requests 100000] [--seed 0] [--at-once 48] [--json]

``tidegate serve`` stands before an honest upstream (model ``m``) and one that answers anything (model ``h``). Each
request has a number, which is its seed: the same number gives the same bytes (``tests/fuzz/hostile.py``), and
``--seed N --requests 1`` plays one again. Expected: the data process lives on and logs no exception, every answer is
well-formed, whoever is owed an answer gets one, and afterwards nothing is left: no open request, no permit, no
connection, and no more memory from one tenth of the run to the next. Exits 1 otherwise.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import importlib.util
import json
import os
import socket
import struct
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.fuzz.answers import MalformedError, answers_in
from tests.fuzz.attack import Attack
from tests.fuzz.hostile import attack
from tests.fuzz.hostile_answers import Step, steps
from tests.live import running
from tests.live.running import Service
from tidegate.errors import ProtocolError
from tidegate.testing.openai_shapes import whole
from tidegate.testing.upstream_process import UpstreamProcess
from tidegate.wire.requests import Incoming, RequestReader

MODELS = ("m", "m", "h")
DUE_WITHIN_S = 75.0
"""A request of class ``batch`` may wait for 60 s behind an engine that says it is busy."""
QUIET_S = 0.05
LEAVES_AFTER_S = 0.1
"""A client whose request is not complete leaves then; every fiftieth stays until it is thrown out."""
THROWN_OUT_WITHIN_S = 45.0
"""Longer than ``keep_alive_s``: who has sent nothing but empty lines counts as idle."""
PHASE = {"floor_s": 1.0, "default_s": 1.0, "ceiling_s": 1.0}
CONFIG = {
    # Longer than this machine ever holds up the attackers between their connection and their first byte.
    "server": {"head_s": 4.0, "keep_alive_s": 30.0},
    "tail": {"timeouts": {"first_byte": PHASE, "gap": PHASE, "total": {**PHASE, "ceiling_s": 5.0, "default_s": 5.0}}},
}
SHOWN = 10


@dataclass
class Found:
    """What came of the run."""

    requests: int = 0
    names: Counter[str] = field(default_factory=Counter)
    statuses: Counter[int] = field(default_factory=Counter)
    malformed: list[str] = field(default_factory=list)
    memory_mib: list[float] = field(default_factory=list)
    """Resident, after each tenth."""
    problems: list[str] = field(default_factory=list)


class HostileEngine(asyncio.Protocol):
    """Honest about its health, and in nothing else."""

    numbers = count()

    def __init__(self) -> None:
        self._reader = RequestReader(1 << 20, 1 << 28)
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        try:
            self._reader.feed(data)
        except ProtocolError:
            self._end("close")
            return
        while self._reader.ready:
            self._take(self._reader.ready.popleft())

    def _take(self, incoming: Incoming) -> None:
        if incoming.target in (b"/v1/models", b"/health"):
            self._play([whole(b"200 OK", b'{"object":"list","data":[{"id":"h"}]}')])
        elif incoming.target in (b"/metrics", b"/props"):
            self._play([whole(b"404 Not Found", b"{}")])
        else:
            self._play(steps(next(self.numbers)))

    def _play(self, left: list[Step]) -> None:
        for at, step in enumerate(left):
            if isinstance(step, float):
                asyncio.get_running_loop().call_later(step, self._play, left[at + 1 :])
                return
            if isinstance(step, str):
                self._end(step)
            elif self._transport is not None:
                self._transport.write(step)

    def _end(self, how: str) -> None:
        if self._transport is not None:
            self._transport.close() if how == "close" else self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self._transport = None
        self._reader.close()


class Hostile(asyncio.Protocol):
    """One attacker's end of its connection."""

    def __init__(self) -> None:
        self.raw = b""
        self.is_closed = False
        self.news = asyncio.Event()

    def data_received(self, data: bytes) -> None:
        self.raw += data
        self.news.set()

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self.is_closed = True
        self.news.set()


async def play(url: str, number: int, given: Attack, found: Found) -> None:
    loop, parts, client = asyncio.get_running_loop(), urlsplit(url), Hostile()
    transport, _ = await loop.create_connection(lambda: client, parts.hostname or "", parts.port or 0)
    transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for piece in given.pieces:
        if not transport.is_closing():
            transport.write(piece)
        await asyncio.sleep(0)
    waits = given.ending == "wait"
    if waits:
        await _until_answered(client, number, given)
    elif given.ending == "half" and transport.can_write_eof() and not transport.is_closing():
        transport.write_eof()
        await _next(client, LEAVES_AFTER_S)
    is_closed = client.is_closed
    if given.ending == "reset" and not transport.is_closing():
        linger = struct.pack("ii", 1, 0)
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    transport.abort()
    answers = answers_in(client.raw, is_closed=is_closed and waits and not given.may_be_cut, is_head=given.is_head)
    found.statuses.update(answer.status for answer in answers)
    if waits and given.is_due and not answers:
        raise MalformedError("no answer came")


async def _until_answered(client: Hostile, number: int, given: Attack) -> None:
    """Until the server closes, or has answered and says no more; who is owed nothing leaves soon, mostly."""
    stays = not given.is_due and number % 50 == 0
    patience_s = DUE_WITHIN_S if given.is_due else THROWN_OUT_WITHIN_S if stays else LEAVES_AFTER_S
    ends_at = time.monotonic() + patience_s
    while not client.is_closed:
        if client.raw and answers_in(client.raw, is_closed=False, is_head=given.is_head):
            if given.is_due or not await _next(client, QUIET_S):
                return
        elif not await _next(client, ends_at - time.monotonic()):
            if stays or given.is_due:
                raise MalformedError(f"neither an answer nor an end within {patience_s} s: {client.raw[:200]!r}")
            return


async def _next(client: Hostile, within_s: float) -> bool:
    """Something more came."""
    client.news.clear()
    try:
        async with asyncio.timeout(max(0.0, within_s)):
            await client.news.wait()
    except TimeoutError:
        return False
    return True


async def work(url: str, numbers: Any, found: Found) -> None:
    for number in numbers:
        given = attack(number, MODELS)
        found.requests += 1
        found.names[given.name.partition("+")[0]] += 1
        try:
            await play(url, number, given, found)
        except (MalformedError, OSError) as error:
            found.malformed.append(f"seed {number}, {given.name}, {given.ending}: {error!r}"[:600])


class Watched:
    """The data process from outside."""

    def __init__(self, service: Service) -> None:
        self._service = service
        (self.pid,) = service.children("tidegate.gateway.process")
        self.open_files = self._open_files()

    def _open_files(self) -> int:
        return len(list(Path(f"/proc/{self.pid}/fd").iterdir()))

    def memory_mib(self) -> float:
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return round(pages * os.sysconf("SC_PAGE_SIZE") / 2**20, 1)

    def problems(self) -> list[str]:
        """What is left when all is over."""
        ends_at = time.monotonic() + 45.0
        while time.monotonic() < ends_at and self._is_alive() and not self._is_clean():
            time.sleep(0.5)
        found = []
        if not self._is_alive():
            found.append(f"the data process {self.pid} died")
        elif not self._is_clean():
            found.append(
                f"left: {self._open_files()} open files, {self.open_files} before; {self._service.view()}"[:600]
            )
        text = self._service.log.read_text()
        return found + [line for line in text.splitlines() if "data process" in line][:SHOWN]

    def _is_alive(self) -> bool:
        return self._service.children("tidegate.gateway.process") == [self.pid]

    def _is_clean(self) -> bool:
        view = self._service.view()
        is_held = any(view.get(name, 1) for name in ("open_requests", "permits", "waiting", "permit_leaks"))
        return not is_held and self._open_files() <= self.open_files + 2


async def fuzz(given: argparse.Namespace, folder: Path, found: Found) -> None:
    loop = asyncio.get_running_loop()
    engine = await loop.create_server(HostileEngine, "127.0.0.1", 0)
    port = engine.sockets[0].getsockname()[1]
    with ExitStack() as stack:
        honest = stack.enter_context(UpstreamProcess(slots=64, pace_s=0.001, first_s=0.001))
        urls = {"m": honest.url, "h": f"http://127.0.0.1:{port}"}
        upstreams = {name: {"replicas": [{"url": url, "model": "theirs"}]} for name, url in urls.items()}
        config = folder / "fuzz.json"
        config.write_text(json.dumps({**CONFIG, "upstreams": upstreams}))
        # Starting and stopping wait for processes, and the hostile engine is asked meanwhile.
        service_at = running.service(folder / "serve.log", "--config", str(config))
        service = await asyncio.to_thread(service_at.__enter__)
        try:
            watched = await asyncio.to_thread(Watched, service)
            await _all(given, service, watched, found)
            found.problems = await asyncio.to_thread(watched.problems)
        finally:
            await asyncio.to_thread(service_at.__exit__, None, None, None)


async def _all(given: argparse.Namespace, service: Service, watched: Watched, found: Found) -> None:
    """In ten parts, with a look at the memory after each."""
    part = max(1, given.requests // 10)
    for start in range(given.seed, given.seed + given.requests, part):
        numbers = iter(range(start, min(start + part, given.seed + given.requests)))
        await asyncio.gather(*(work(service.url, numbers, found) for _ in range(given.at_once)))
        found.memory_mib.append(watched.memory_mib())
        print(f"{found.requests} requests, {found.memory_mib[-1]} MiB, {len(found.malformed)} malformed",
              file=sys.stderr)  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description="hostile requests against a real data process")
    parser.add_argument("--requests", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0, help="number of the first request")
    parser.add_argument("--at-once", type=int, default=48, help="connections beside each other")
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output, nothing else")
    given = parser.parse_args()
    factory = importlib.import_module("uvloop").new_event_loop if importlib.util.find_spec("uvloop") else None
    found, began = Found(), time.monotonic()
    with tempfile.TemporaryDirectory() as folder, asyncio.Runner(loop_factory=factory) as runner:
        runner.run(fuzz(given, Path(folder), found))
    took_s = time.monotonic() - began
    shown = {
        "requests": found.requests, "took_s": round(took_s, 1), "malformed": len(found.malformed),
        "problems": found.problems, "answers": sum(found.statuses.values()), "memory_mib": found.memory_mib,
        "statuses": dict(sorted(found.statuses.items())), "kinds": dict(found.names.most_common()),
    }  # fmt: skip
    print(json.dumps(shown) if given.json else "\n".join(f"{name:10} {value}" for name, value in shown.items()))
    for each in found.malformed[:SHOWN]:
        print(each, file=sys.stderr)
    return 1 if found.malformed or found.problems else 0


if __name__ == "__main__":
    sys.exit(main())
