"""The processes of ``bench/tokenizing.py``, one role each.

    tokenizing.py engine PORT TOKENIZER serial|pipelined INFERENCE_S
    tokenizing.py front PORT ENGINE_PORT OTHER_PORT TOKENIZER text|processes|thread|loop [watched]
    tokenizing.py burn
    tokenizing.py sender PORT TEXT_FILE PROMPT_CHARACTERS CONCURRENCY COUNT PREFIX|none

The engine is no engine: it tokenizes with the real library and then sleeps for as long as it is told, one request
at a time, as a GPU that is busy with one prefill. ``serial`` tokenizes in the loop that also serves, ``pipelined`` in a
thread beside it. The front is the gateway's data plane in one process.
"""

from __future__ import annotations

import asyncio
import importlib
import itertools
import json
import os
import random
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path as File
from typing import Any

from tidegate.gateway.client_connection import ClientConnection
from tidegate.gateway.dial import Dialer
from tidegate.gateway.driver import Driver
from tidegate.gateway.gateway import Gateway, Surroundings
from tidegate.gateway.journal import Journal
from tidegate.gateway.settings import Endpoint, Settings
from tidegate.gateway.tally import Tally
from tidegate.gateway.ticker import Ticker, stop_automatic_collection
from tidegate.gateway.tokenizer_pool import TokenizerPool
from tidegate.gateway.tokenizer_process import Owner, Seat, TokenizerProcess
from tidegate.gateway.tokenizing import NICENESS, Desk
from tidegate.gateway.tokenizing_messages import Question
from tidegate.lens.metrics import Metrics
from tidegate.policy.limits.adaptive import LimitConfig
from tidegate.policy.path import Path
from tidegate.policy.path_config import PathConfig
from tidegate.policy.queue import QueueConfig
from tidegate.policy.reading import ReplicaConfig

MODEL, OTHER = "m", "s"
"""What is asked for at length, and what everybody else asks for, on an engine of its own."""
LAG_EVERY_S = 0.002
SHORT_CHARACTERS = 1000
"""Not worth a thread: they would wait in it behind long ones."""


class Engine:
    """What stands for an engine."""

    def __init__(self, tokenizer: str, is_serial: bool, inference_s: float) -> None:
        library: Any = importlib.import_module("tokenizers")
        self._tokenizer = library.Tokenizer.from_file(str(File(tokenizer) / "tokenizer.json"))
        self._thread = ThreadPoolExecutor(1)
        self._is_serial = is_serial
        self._inference_s = inference_s
        self._gpu = asyncio.Lock()
        self.with_ids = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await _head(reader):
            line, length = head
            body = await reader.readexactly(length)
            answer, kind = await self._answer(line, body)
            lines = b"HTTP/1.1 %b\r\ncontent-type: %b\r\ncontent-length: %d\r\n\r\n"
            writer.write(lines % (b"200 OK" if answer else b"400 Bad Request", kind, len(answer)) + answer)
        writer.close()

    async def _answer(self, line: bytes, body: bytes) -> tuple[bytes, bytes]:
        if b"/metrics" in line:
            return b"vllm:num_requests_running 0\n", b"text/plain"
        if b"/tokenize" in line:
            prompt = json.loads(body).get("prompt")
            if prompt is None:
                return b"", b"text/plain"
            ids = self._tokenizer.encode(prompt).ids
            return json.dumps({"tokens": ids, "count": len(ids)}).encode(), b"application/json"
        if b"/completions" in line:
            return await self._complete(body), b"application/json"
        return json.dumps({"data": [{"id": MODEL}]}).encode(), b"application/json"

    async def _complete(self, body: bytes) -> bytes:
        fields = json.loads(body)
        prompt = fields["prompt"]
        if isinstance(prompt, list):
            tokens = len(prompt)
            self.with_ids += 1
        elif self._is_serial or len(prompt) < SHORT_CHARACTERS:
            tokens = self._tokens(prompt)
        else:
            tokens = await asyncio.get_running_loop().run_in_executor(self._thread, self._tokens, prompt)
        if tokens > 1000 and self._inference_s:
            async with self._gpu:
                await asyncio.sleep(self._inference_s)
        usage = {"prompt_tokens": tokens, "completion_tokens": 1}
        return json.dumps({"choices": [{"index": 0, "text": "x"}], "usage": usage}).encode()

    def _tokens(self, prompt: str) -> int:
        # To the list of ids, which an engine needs, and by the call that leaves the interpreter's lock alone.
        return len(self._tokenizer.encode_batch_fast([prompt], add_special_tokens=True)[0].ids)


async def _head(reader: asyncio.StreamReader) -> tuple[bytes, int] | None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    lines = head.lower().split(b"\r\n")
    length = next((int(line.split(b":")[1]) for line in lines if line.startswith(b"content-length:")), 0)
    return lines[0], length


class InProcess:
    """A seat in this very process: what the tokenizer processes are compared with."""

    def __init__(self, owner: Owner, thread: ThreadPoolExecutor | None) -> None:
        self._owner = owner
        self._desk = Desk()
        self._thread = thread

    def ask(self, question: Question) -> bool:
        loop = asyncio.get_running_loop()
        if self._thread is None:
            loop.call_soon(lambda: self._owner.on_told(self, self._desk.answer(question)))
        else:
            loop.run_in_executor(self._thread, self._desk.answer, question).add_done_callback(
                lambda told: self._owner.on_told(self, told.result())
            )
        return True

    def kill(self) -> None:
        self._owner.on_gone(self)


async def front(
    port: int, engine_port: int, other_port: int, tokenizer: str, mode: str, watch: Watch | None = None
) -> None:
    """Serve until SIGTERM, then say how late the loop was."""
    replicas = (ReplicaConfig(name="r", upstream=MODEL), ReplicaConfig(name="o", upstream=OTHER))
    # Nobody shall wait for anything but processors.
    queue = QueueConfig(max_tokens=10**9)
    path = PathConfig(replicas=replicas, limit=LimitConfig(enabled=False), queue=queue)
    endpoint = Endpoint(
        name="r",
        host="127.0.0.1",
        port=engine_port,
        kind="vllm",
        tokenizer=None if mode == "text" else tokenizer,
        takes_token_ids=mode != "text",
    )
    other = Endpoint(name="o", host="127.0.0.1", port=other_port)
    settings, loop = Settings(path=path, endpoints=(endpoint, other), port=port), asyncio.get_running_loop()
    thread = ThreadPoolExecutor(1) if mode == "thread" else None

    async def in_process(owner: Owner) -> Seat:
        return InProcess(owner, thread)

    pool = TokenizerPool(TokenizerProcess.spawn) if mode == "processes" else TokenizerPool(in_process, 1)
    metrics = Metrics([MODEL, OTHER], path.classes.classes, 0.0)
    numbers = itertools.count(1)
    is_compared = asyncio.Event()

    def log(level: str, text: str) -> None:
        print(level, text, file=sys.stderr, flush=True)
        if level == "info":
            is_compared.set()

    around = Surroundings(
        loop=loop,
        driver=Driver(Path(path, loop.time()), loop),
        journal=Journal(metrics, lambda _: None),
        dial=Dialer(),
        draws=lambda: next(numbers),
        poll_soon=lambda _: None,
        tally=Tally(pool=pool, log=log),
    )
    gateway = Gateway(settings, around)
    Ticker(gateway, loop, settings.timers.tick_s, metrics.observe_lag).start()
    server = await loop.create_server(lambda: ClientConnection(gateway), "127.0.0.1", port)
    stop_automatic_collection()
    if mode != "text":
        await is_compared.wait()
    lags = await _lags_until_stopped(loop, [] if watch is None else watch.callbacks)
    server.close()
    gateway.stop()
    await asyncio.sleep(0.1)
    lags.sort()
    told = {"p99_ms": 1e3 * lags[int(0.99 * len(lags))], "max_ms": 1e3 * lags[-1]}
    if watch is not None:
        watch.callbacks.sort()
        told["callback_ms"] = watch.callbacks[-1]
        told["callbacks_above_1_ms"] = sum(each > 1.0 for each in watch.callbacks)
        told["callbacks"] = len(watch.callbacks)
    print(json.dumps(told), flush=True)


class Watch:
    """CPU milliseconds of every callback of asyncio's own loop: who else uses the machine does not show in them."""

    def __init__(self) -> None:
        self.callbacks: list[float] = [0.0]
        self._run = asyncio.Handle._run  # noqa: SLF001 - the one place through which every callback of the loop goes

    def install(self) -> None:
        watch = self

        def run(handle: asyncio.Handle) -> None:
            began = time.thread_time()
            watch._run(handle)
            watch.callbacks.append(1e3 * (time.thread_time() - began))

        asyncio.Handle._run = run  # type: ignore[method-assign]  # noqa: SLF001 - as above


async def _lags_until_stopped(loop: asyncio.AbstractEventLoop, callbacks: list[float]) -> list[float]:
    stopped, lags = asyncio.Event(), [0.0]
    loop.add_signal_handler(signal.SIGTERM, stopped.set)
    # What came before (start-up, the comparison) is not counted.
    loop.add_signal_handler(signal.SIGUSR1, lambda: (lags.clear(), callbacks.clear()))
    print("ready", flush=True)
    while not stopped.is_set():
        before = loop.time()
        await asyncio.sleep(LAG_EVERY_S)
        lags.append(time.monotonic() - before - LAG_EVERY_S)
    return lags


def prompts(text: str, characters: int, seed: int) -> Any:
    """Endless texts of that size, of which no two begin alike."""
    rng, lines = random.Random(seed), text.splitlines()
    for number in itertools.count():
        rng.shuffle(lines)
        whole = "\n".join(lines)
        whole *= 1 + characters // len(whole)
        yield f"{seed} {number} {whole[:characters]}"


async def send(port: int, text: str, characters: int, concurrency: int, count: int, prefix: str) -> float:
    """Send ``count`` long completions; seconds from the first to the last."""
    made = prompts(text, characters, os.getpid())
    turns = itertools.count()

    def body() -> bytes:
        prompt = next(made) if not prefix else f"{prefix}<|im_end|>\nTurn {next(turns)}"
        return json.dumps({"model": MODEL, "prompt": prompt, "max_tokens": 1}).encode()

    bodies = [body() for _ in range(min(count, 64))]
    began = time.monotonic()

    async def one(start: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**22)
        for number in range(start, count, concurrency):
            whole = bodies[number % len(bodies)]
            writer.write(b"POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % len(whole) + whole)
            head = await _head(reader)
            assert head is not None, "the gateway closed the connection"
            answer = await reader.readexactly(head[1])
            assert b"prompt_tokens" in answer, answer[:300]
        writer.close()

    await asyncio.gather(*(one(start) for start in range(concurrency)))
    return time.monotonic() - began


def burn() -> None:
    """Take a processor's time as a tokenizer process does, and do nothing for anybody."""
    os.nice(NICENESS)
    is_stopped: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: is_stopped.append(number))
    print("ready", flush=True)
    while not is_stopped:
        sum(range(10_000))
    print("{}", flush=True)


def main(role: str, *given: str) -> None:
    if role == "burn":
        burn()
        return
    loops: Any = importlib.import_module("uvloop")
    watch = Watch() if given[-1] == "watched" else None
    if watch is not None:
        watch.install()
    with asyncio.Runner(loop_factory=loops.new_event_loop if watch is None else None) as runner:
        if role == "engine":
            port, tokenizer, manner, inference_s = given
            runner.run(_serve_engine(int(port), Engine(tokenizer, manner == "serial", float(inference_s))))
        elif role == "front":
            runner.run(front(int(given[0]), int(given[1]), int(given[2]), given[3], given[4], watch))
        else:
            port, file, characters, concurrency, count, prefix = given
            text = File(file).read_text()
            shared = "" if prefix == "none" else f"<|im_start|>{(text * 20)[: int(characters)]}"
            took_s = runner.run(send(int(port), text, int(characters), int(concurrency), int(count), shared))
            print(json.dumps({"took_s": took_s}), flush=True)


async def _serve_engine(port: int, engine: Engine) -> None:
    server = await asyncio.start_server(engine.serve, "127.0.0.1", port, limit=2**24)
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    print("ready", flush=True)
    await stopped.wait()
    print(json.dumps({"with_ids": engine.with_ids}), flush=True)
    server.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
