"""What tokenizing long prompts beside the engine is worth, and what it costs everybody else (SPEC S3-14, S3-74, R14).

    python bench/tokenizing.py [--rounds 3] [--parts holds,watched,engine,throughput,latency] [--modes …] [--json]

``holds``: CPU milliseconds for which one prompt of 128 000 tokens holds the gateway's loop, step by step. ``watched``:
the longest callback of that loop beside 8 × 128 000 tokens that are tokenized without a pause. ``engine``: CPU of both
sides for a prompt, as text and as ids. None of these depends on who else uses the machine; the other two do.

``throughput``: prompts a second, as text and as ids, before an engine that tokenizes and then infers for a given part
of the time that tokenizing takes; ratios of the same round. ``latency``: short requests to another engine, 100 a
second, beside a process that takes as much of a processor and tokenizes nothing, and beside the long prompts: tokenized
by processes, in a thread of the gateway, in its loop, or by their engine.

The tokenizer is the demo model's, made of its GGUF file.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from msgspec import Raw, msgpack

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.live.smollm_tokenizer import write_tokenizer
from tidegate.engines.loopback import free_port
from tidegate.gateway.piece_cache import PieceCache
from tidegate.gateway.tokenizer import Tokenizer
from tidegate.gateway.tokenizing_messages import Count, Told
from tidegate.wire.body import Body

ROOT = Path(__file__).resolve().parents[1]
ROLES = ROOT / "bench" / "rows" / "tokenizing.py"
SHORT = (
    b'POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-length: 42\r\n\r\n{"model":"s","prompt":"hi","max_tokens":1}'
)
EVERY_S = 0.01
WINDOW_S = 6.0
LONG_TOKENS = 128_000
PROMPTS = 8
LONG_AFTER_S = 4.0
"""The sender makes its prompts first."""
MODES = ("processes", "thread", "loop", "text")


class Place:
    """A folder with the tokenizer and the text that prompts are made of."""

    def __init__(self, folder: Path) -> None:
        self.tokenizer = write_tokenizer(folder / "tokenizer")
        self.text = folder / "text"
        files = [*sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "src").rglob("*.py"))]
        self.text.write_text("\n".join(file.read_text() for file in files))
        library: Any = importlib.import_module("tokenizers")
        self._tokenizer = library.Tokenizer.from_file(str(self.tokenizer / "tokenizer.json"))
        sample = self.text.read_text()[:400_000]
        self.per_token = len(sample) / len(self.encode(sample))

    def encode(self, text: str) -> Any:
        """The library's encoding, by the call that leaves the interpreter's lock alone."""
        return self._tokenizer.encode_batch_fast([text], add_special_tokens=False)[0]

    def tokenizing_s(self, tokens: int) -> float:
        """On one core, as an engine does it; the median of five."""
        text, took = self.text.read_text()[: int(tokens * self.per_token)], []
        for number in range(5):
            began = time.monotonic()
            self.encode(f"{number} {text}")
            took.append(time.monotonic() - began)
        return statistics.median(took)


class Role:
    """A process of ``rows/tokenizing.py``, from when it is ready to the end of a ``with`` block."""

    def __init__(self, *given: object) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(ROLES), *map(str, given)],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=ROOT,
        )
        self.told: dict[str, float] = {}
        """What it says at its end."""

    def __enter__(self) -> Role:
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "ready\n"
        return self

    def __exit__(self, *_: object) -> None:
        self.process.send_signal(signal.SIGTERM)
        try:
            said, _error = self.process.communicate(timeout=30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        self.told = json.loads(said)


class Pair:
    """An engine and a gateway before it."""

    def __init__(self, place: Place, mode: str, manner: str, inference_s: float, *more: str) -> None:
        engine_port, other_port, self.port = free_port(), free_port(), free_port()
        self.engine = Role("engine", engine_port, place.tokenizer, manner, inference_s)
        self.other = Role("engine", other_port, place.tokenizer, "pipelined", 0.0)
        self.front = Role("front", self.port, engine_port, other_port, place.tokenizer, mode, *more)

    def __enter__(self) -> Pair:
        self.engine.__enter__()
        self.other.__enter__()
        self.front.__enter__()
        return self

    def __exit__(self, *given: object) -> None:
        self.front.__exit__(*given)
        self.other.__exit__(*given)
        self.engine.__exit__(*given)


def sender(place: Place, port: int, tokens: int, concurrency: int, count: int, prefix: str) -> subprocess.Popen[str]:
    given = ("sender", port, place.text, int(tokens * place.per_token), concurrency, count, prefix)
    command = [sys.executable, str(ROLES), *map(str, given)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)


# ---- engine --------------------------------------------------------------------------------------


def cpu_s(pid: int) -> float:
    """What a process and its ended children have used so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


def tree(pid: int) -> list[int]:
    children = [
        int(child) for task in Path(f"/proc/{pid}/task").glob("*/children") for child in task.read_text().split()
    ]
    return [pid, *(found for child in children for found in tree(child))]


def spent_ms(place: Place, mode: str, tokens: int, prefix: str) -> dict[str, float]:
    """CPU milliseconds of each side for a prompt; they do not depend on who else uses the machine, as times do."""
    with Pair(place, mode, "pipelined", 0.0) as pair:
        sender(place, pair.port, tokens, 1, 1, prefix).communicate()
        sides = {"engine": [pair.engine.process.pid], "gateway": tree(pair.front.process.pid)}
        before = {side: sum(map(cpu_s, pids)) for side, pids in sides.items()}
        sender(place, pair.port, tokens, 2, PROMPTS, prefix).communicate()
        after = {side: sum(map(cpu_s, pids)) for side, pids in sides.items()}
    if mode != "text" and pair.engine.told["with_ids"] <= PROMPTS:
        print(f"only {pair.engine.told['with_ids']:.0f} of {PROMPTS + 1} went as ids", file=sys.stderr)
    return {side: 1e3 * (after[side] - before[side]) / PROMPTS for side in sides}


def engine(place: Place) -> dict[str, dict[str, float]]:
    found = {}
    for tokens, what, prefix in (
        (LONG_TOKENS, "all new", "none"),
        (LONG_TOKENS, "known but for a turn", "same"),
        (32_000, "all new", "none"),
    ):
        text, ids = (spent_ms(place, mode, tokens, prefix) for mode in ("text", "processes"))
        found[f"{tokens // 1000}k tokens, {what}"] = {
            "engine, text": text["engine"],
            "engine, ids": ids["engine"],
            "ratio": text["engine"] / ids["engine"],
            "gateway, text": text["gateway"],
            "gateway, ids": ids["gateway"],
        }
    return found


# ---- throughput ----------------------------------------------------------------------------------


def per_s(place: Place, mode: str, manner: str, inference_s: float, load: tuple[int, int, str]) -> float:
    """Prompts a second, eight at a time."""
    tokens, count, prefix = load
    with Pair(place, mode, manner, inference_s) as pair:
        # The first of a tokenizer process, and the one that fills its cache.
        sender(place, pair.port, tokens, 1, 1, prefix).communicate()
        told, _ = sender(place, pair.port, tokens, 8, count, prefix).communicate()
    if mode != "text" and pair.engine.told["with_ids"] < count:
        print(f"only {pair.engine.told['with_ids']:.0f} of {count + 1} went as ids", file=sys.stderr)
    return count / float(json.loads(told)["took_s"])


def throughput(place: Place, rounds: int) -> list[dict[str, Any]]:
    found = []
    cells = [
        (f"{tokens // 1000}k tokens, {what}", (tokens, count, prefix), manner, part)
        for tokens, count, what, prefix, parts in (
            (LONG_TOKENS, 12, "all new", "none", (0.25, 1.0, 4.0)),
            (LONG_TOKENS, 24, "known but for a turn", "same", (0.25,)),
            (32_000, 32, "all new", "none", (1.0,)),
        )
        for manner in ("serial", "pipelined")
        for part in parts
    ]
    for name, load, manner, part in cells:
        tokenizing_s = place.tokenizing_s(load[0])
        ratios, text = [], []
        for _ in range(rounds):
            text.append(per_s(place, "text", manner, part * tokenizing_s, load))
            ratios.append(per_s(place, "processes", manner, part * tokenizing_s, load) / text[-1])
        found.append(
            {
                "load": name,
                "engine": manner,
                "inference": part,
                "tokenizing_ms": 1e3 * tokenizing_s,
                "text_per_s": statistics.median(text),
                "ids_ratio": statistics.median(ratios),
                "ids_ratios": ratios,
            }
        )
        print(
            f"{name:34} {manner:10} inference {part:4} × {1e3 * tokenizing_s:4.0f} ms   text "
            f"{statistics.median(text):6.2f}/s   ids × {statistics.median(ratios):.2f}  "
            f"({', '.join(f'{ratio:.2f}' for ratio in ratios)})",
            file=sys.stderr,
        )
    return found


# ---- holds ---------------------------------------------------------------------------------------


def holds(place: Place) -> dict[str, float]:
    """What the data process does for one prompt of 128 000 tokens, in the order of its life; medians."""
    text = place.text.read_text()[: int(LONG_TOKENS * place.per_token)]
    body = json.dumps({"model": "m", "prompt": text, "max_tokens": 1}).encode()
    tokenizer = Tokenizer(str(place.tokenizer), PieceCache())
    counted = tokenizer.count("/v1/completions", body, wants_ids=True)
    uncached = Tokenizer(str(place.tokenizer), PieceCache(most_pieces=0))
    read, ids = Body(body), Raw(counted.prompt_ids or b"")
    encoder, decoder = msgpack.Encoder(), msgpack.Decoder(Told)
    frame = bytearray(encoder.encode(counted))
    batch = place.encode(text)
    return {
        "read the body's fields": cpu_ms(lambda: Body(body)),
        "hand the body to a process": cpu_ms(lambda: b"four" + encoder.encode(Count("t", "p", body, True))),
        "take its answer": cpu_ms(lambda: decoder.decode(frame[:])),
        "write the ids into the body": cpu_ms(lambda: read.edited({"prompt": ids})),
        "instead, in a thread: ids as a list": cpu_ms(lambda: batch.ids),
        "instead, in the loop: all of it": cpu_ms(lambda: uncached.count("/v1/completions", body, wants_ids=True), 3),
    }


def cpu_ms(step: Callable[[], object], rounds: int = 15) -> float:
    took = []
    for _ in range(rounds):
        began = time.thread_time()
        step()
        took.append(1e3 * (time.thread_time() - began))
    return statistics.median(took)


def watched(place: Place) -> dict[str, dict[str, float]]:
    """Beside 8 × 128 000 tokens: CPU of the longest callback of the gateway's loop, and how many passed 1 ms."""
    found = {}
    for mode in ("text", "processes", "loop"):
        with Pair(place, mode, "pipelined", 0.0, "watched") as pair:
            sender(place, pair.port, LONG_TOKENS, 1, 1, "none").communicate()
            pair.front.process.send_signal(signal.SIGUSR1)
            long = sender(place, pair.port, LONG_TOKENS, 8, 2 * PROMPTS, "none")
            asyncio.run(short_requests(pair.port, WINDOW_S))
            long.communicate()
        found[mode] = {name: pair.front.told[name] for name in ("callback_ms", "callbacks_above_1_ms", "callbacks")}
    return found


# ---- latency -------------------------------------------------------------------------------------


async def short_requests(port: int, seconds: float, long: subprocess.Popen[str] | None = None) -> list[float]:
    """Milliseconds of each of 100 requests a second, sorted; each has a connection that is free. ``long`` ends with
    the last of them."""
    idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
    took: list[float] = []

    async def one(due: float) -> None:
        reader, writer = idle.pop() if idle else await asyncio.open_connection("127.0.0.1", port)
        writer.write(SHORT)
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200"), head
            length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
            await reader.readexactly(length)
        except OSError as error:
            print(f"a connection was lost: {error}", file=sys.stderr)
            return
        # From when it was due: a client that is late itself would hide what happens meanwhile.
        took.append(1e3 * (time.monotonic() - due))
        idle.append((reader, writer))

    began, tasks = time.monotonic(), []
    for number in range(int(seconds / EVERY_S)):
        due = began + number * EVERY_S
        await asyncio.sleep(max(0.0, due - time.monotonic()))
        tasks.append(asyncio.ensure_future(one(due)))
    if long is not None:
        long.kill()
    await asyncio.gather(*tasks)
    for _, writer in idle:
        writer.close()
    return sorted(took)


def quantile(values: list[float], part: float) -> float:
    return values[min(len(values) - 1, int(part * len(values)))]


def beside(place: Place, mode: str) -> dict[str, float]:
    """One mode: alone, then beside long prompts, in the same pair of processes."""
    with Pair(place, mode, "pipelined", 0.0) as pair:
        sender(place, pair.port, LONG_TOKENS, 1, 1, "none").communicate()
        asyncio.run(short_requests(pair.port, 1.0))
        # A process that only burns takes the place of what tokenizes: two threads of one core are no more for that.
        with Role("burn"):
            alone = asyncio.run(short_requests(pair.port, WINDOW_S))
        long = sender(place, pair.port, LONG_TOKENS, 8, 10**6, "none")
        time.sleep(LONG_AFTER_S)
        pair.front.process.send_signal(signal.SIGUSR1)
        loaded = asyncio.run(short_requests(pair.port, WINDOW_S, long))
        long.communicate()
    lag = pair.front.told
    return {
        "alone_p50": quantile(alone, 0.5),
        "alone_p99": quantile(alone, 0.99),
        "p50": quantile(loaded, 0.5),
        "p99": quantile(loaded, 0.99),
        "max": loaded[-1],
        "loop_p99": lag["p99_ms"],
        "loop_max": lag["max_ms"],
        "with_ids": pair.engine.told["with_ids"],
    }


def latency(place: Place, rounds: int, modes: list[str]) -> dict[str, dict[str, float]]:
    rows: dict[str, list[dict[str, float]]] = {mode: [] for mode in modes}
    for _ in range(rounds):
        for mode in modes:
            rows[mode].append(beside(place, mode))
            print(mode, {name: round(value, 1) for name, value in rows[mode][-1].items()}, file=sys.stderr)
    found = {}
    for mode, measured in rows.items():
        found[mode] = {name: statistics.median(each[name] for each in measured) for name in measured[0]}
        found[mode]["p99_moves"] = statistics.median(each["p99"] - each["alone_p99"] for each in measured)
    return found


def show(found: dict[str, Any]) -> None:
    for step, milliseconds in found.get("holds", {}).items():
        print(f"{step:34} {milliseconds:6.2f} ms")
    for part in ("watched", "engine", "latency"):
        for name, row in found.get(part, {}).items():
            print(f"{name:34}" + "".join(f"  {figure} {value:.1f}" for figure, value in row.items()))
    for row in found.get("throughput", ()):
        print(
            f"{row['load']:34} {row['engine']:10} inference {row['inference']:4} × {row['tokenizing_ms']:4.0f} ms"
            f"   text {row['text_per_s']:6.2f}/s   ids × {row['ids_ratio']:.2f}"
        )


def main() -> int:
    parser = argparse.ArgumentParser(description="tokenizing long prompts beside the engine")
    parser.add_argument("--rounds", type=int, default=3, help="of throughput and latency")
    parser.add_argument("--parts", default="holds,watched,engine,throughput,latency")
    parser.add_argument("--modes", default=",".join(MODES), help="of latency")
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output, nothing else")
    options = parser.parse_args()
    parts: dict[str, Callable[[Place], Any]] = {
        "holds": holds,
        "watched": watched,
        "engine": engine,
        "throughput": lambda place: throughput(place, options.rounds),
        "latency": lambda place: latency(place, options.rounds, options.modes.split(",")),
    }
    with tempfile.TemporaryDirectory() as folder:
        place = Place(Path(folder))
        found = {name: parts[name](place) for name in options.parts.split(",")}
    if options.json:
        print(json.dumps(found))
    else:
        show(found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
