"""What each stage of a request costs inside the data process: the table of DESIGN, section 5.

    python bench/stages.py [--json]
    PYTHONPATH=build/compiled python bench/stages.py

One process, no sockets: bytes go in, bytes come out, the transports do nothing. So kernel, loop and
uvloop are not in it (bench/peers.py has them). Each stage's functions are timed where they stand,
inside whole requests; what is left over is the gateway's own glue and counts as framing. The figures
are CPU time, of the fastest of many short runs: anything else on the machine only ever adds. Compiled
code calls its own functions directly, so that of the compiled build only the totals can be told.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import itertools
import json
import sys
from collections.abc import Callable
from time import process_time_ns
from typing import Any

from rows.front import MODEL

from tidegate.cli.build import COMPILED, build
from tidegate.gateway import exchange as exchange_module
from tidegate.gateway.call import Call
from tidegate.gateway.client_connection import ClientConnection
from tidegate.gateway.driver import Driver
from tidegate.gateway.engine_connection import EngineConnection
from tidegate.gateway.exchange import Exchange
from tidegate.gateway.gateway import Gateway, Surroundings
from tidegate.gateway.intake import Intake
from tidegate.gateway.journal import Journal
from tidegate.gateway.reply import Reply
from tidegate.gateway.settings import Endpoint, Settings
from tidegate.lens.metrics import Metrics
from tidegate.lens.row import Row
from tidegate.policy.limits.adaptive import LimitConfig
from tidegate.policy.path import Path
from tidegate.policy.path_config import PathConfig
from tidegate.policy.queue import QueueConfig
from tidegate.policy.reading import Capacity, ReplicaConfig

BODY = json.dumps(
    {
        "model": MODEL,
        "messages": [
            {"role": "system", "content": "You are a helpful assistant that answers in short sentences."},
            {
                "role": "user",
                "content": "Write one paragraph about the quick brown fox, please, and keep it short. " * 3,
            },
        ],
        "max_tokens": 128,
        "temperature": 0.7,
    }
).encode()
REQUEST = b"POST /v1/chat/completions HTTP/1.1\r\nHost: gate\r\nContent-Type: application/json\r\n"
REQUEST += b"Content-Length: %d\r\n\r\n%b" % (len(BODY), BODY)
REPLY_BODY = json.dumps(
    {
        "id": "chatcmpl-0123456789abcdef",
        "object": "chat.completion",
        "model": MODEL,
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "word " * 60}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 42, "total_tokens": 74, "completion_tokens": 32},
    }
).encode()
REPLY = (
    b"HTTP/1.1 200 OK\r\ndate: x\r\nserver: uvicorn\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b"
)
REPLY %= (len(REPLY_BODY), REPLY_BODY)

RUN = 40
RUNS = 150
FRAMING = "sockets, parse, re-frame"


class Clock:
    """Adds up the time spent inside a stage's functions, less what looking at the clock costs."""

    def __init__(self) -> None:
        self.spent_ns: dict[str, int] = {}
        self._look_ns = min(self._look() for _ in range(2000))

    @staticmethod
    def _look() -> int:
        begun = process_time_ns()
        return process_time_ns() - begun

    def timed(self, stage: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*arguments: Any, **named: Any) -> Any:
            begun = process_time_ns()
            try:
                return function(*arguments, **named)
            finally:
                self.spent_ns[stage] = self.spent_ns.get(stage, 0) + process_time_ns() - begun - self._look_ns

        return wrapped

    def watch(self, stage: str, owner: Any, *names: str) -> None:
        for name in names:
            setattr(owner, name, self.timed(stage, getattr(owner, name)))


class Nowhere:
    """A transport that swallows everything."""

    def write(self, data: bytes) -> None: ...
    def close(self) -> None: ...
    def abort(self) -> None: ...
    def pause_reading(self) -> None: ...
    def resume_reading(self) -> None: ...
    def set_write_buffer_limits(self, high: int) -> None: ...
    def get_extra_info(self, _name: str) -> tuple[str, int]:
        return ("127.0.0.1", 40000)


class Bench:
    """A gateway with one replica and three clients."""

    def __init__(self, sequences: int | None, queue: int) -> None:
        replica = ReplicaConfig(name="r", upstream=MODEL, capacity=Capacity(sequences=sequences))
        path = PathConfig(replicas=(replica,), limit=LimitConfig(initial=1024), queue=QueueConfig(max_requests=queue))
        endpoint = Endpoint(name="r", host="127.0.0.1", port=9000)
        settings = Settings(path=path, endpoints=(endpoint,), is_cache_enabled=True)
        self.loop = asyncio.new_event_loop()
        self.path = Path(path, self.loop.time())
        metrics = Metrics([MODEL], path.classes.classes, 0.0)
        self.rows: list[Row] = []
        numbers = itertools.count(1)
        around = Surroundings(
            loop=self.loop,
            driver=Driver(self.path, self.loop),
            journal=Journal(metrics, self.rows.append),
            dial=self._dial,
            draws=lambda: next(numbers),
            poll_soon=lambda _: None,
        )
        self.gateway = Gateway(settings, around)
        self.engine: EngineConnection
        self._dialled = asyncio.Event()
        self.clients = [ClientConnection(self.gateway) for _ in range(3)]
        for client in self.clients:
            client.connection_made(Nowhere())  # type: ignore[arg-type]  # a stand-in for a transport
        self.loop.run_until_complete(self._warm())

    async def _warm(self) -> None:
        """One request, so that there is a connection to reuse."""
        self.clients[0].data_received(REQUEST)
        await self._dialled.wait()
        await asyncio.sleep(0)
        self.engine.data_received(REPLY)

    async def _dial(self, _endpoint: Endpoint, make: Callable[[], EngineConnection]) -> EngineConnection:
        self.engine = make()
        self.engine.connection_made(Nowhere())  # type: ignore[arg-type]  # a stand-in for a transport
        self._dialled.set()
        return self.engine


def nobody_waits() -> Callable[[], None]:
    bench = Bench(sequences=None, queue=10)
    client, engine = bench.clients[0], bench.engine

    def once() -> None:
        client.data_received(REQUEST)
        engine.data_received(REPLY)

    return once


def all_wait() -> Callable[[], None]:
    bench = Bench(sequences=1, queue=10)
    engine, turn = bench.engine, itertools.cycle(bench.clients[:2])
    next(turn).data_received(REQUEST)

    def once() -> None:
        next(turn).data_received(REQUEST)
        engine.data_received(REPLY)

    return once


def all_refused() -> Callable[[], None]:
    bench = Bench(sequences=1, queue=1)
    running, waiting, refused = bench.clients
    running.data_received(REQUEST)
    waiting.data_received(REQUEST)

    def once() -> None:
        refused.data_received(REQUEST)

    return once


def measure(case: Callable[[], Callable[[], None]], clock: Clock) -> dict[str, float]:
    """Microseconds per request: each stage's fastest run, and the whole's."""
    once = case()
    for _ in range(RUN * 10):
        once()
    best: dict[str, float] = {}
    for _ in range(RUNS):
        clock.spent_ns.clear()
        begun = process_time_ns()
        for _ in range(RUN):
            once()
        found = {"whole": process_time_ns() - begun, **clock.spent_ns}
        for stage, spent_ns in found.items():
            best[stage] = min(best.get(stage, 1e9), spent_ns / RUN / 1000)
    return best


def stages() -> dict[str, dict[str, float]]:
    cases = {"nobody waits": nobody_waits, "waits": all_wait, "refused": all_refused}
    gc.disable()
    plain = {name: measure(case, Clock())["whole"] for name, case in cases.items()}
    if build() == COMPILED:
        return {name: {"total": total} for name, total in plain.items()}
    clock = Clock()
    clock.watch("auth, headers, body fields", Intake, "read", "cache_key")
    clock.watch("auth, headers, body fields", Call, "bytes_for")
    clock.watch("path", Path, "offer", "advance", "settle", "close", "progress", "next_wakeup", "remember")
    clock.watch("record + metrics", Journal, "closed")
    clock.watch("response head", Exchange, "_own_lines")
    clock.watch("response head", exchange_module, "passed_lines")
    clock.watch("response head", Reply, "_head")
    table = {}
    for name, case in cases.items():
        found = measure(case, clock)
        found.pop("whole")
        table[name] = {FRAMING: plain[name] - sum(found.values()), **found, "total": plain[name]}
    return table


def main() -> int:
    parser = argparse.ArgumentParser(description="microseconds of each stage of a request, without sockets")
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output, nothing else")
    options = parser.parse_args()
    table = stages()
    if options.json:
        print(json.dumps(table))
        return 0
    names = list(dict.fromkeys(itertools.chain.from_iterable(table.values())))
    names.sort(key=lambda name: name == "total")
    print(f"{'us per request, no sockets':30}" + "".join(f"{case:>14}" for case in table))
    for name in names:
        print(f"{name:30}" + "".join(f"{column.get(name, 0.0):>14.1f}" for column in table.values()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
