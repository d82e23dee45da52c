"""A real vLLM server on this machine, and the clients of one load. Needs only the standard library."""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import signal
import socket
import subprocess
import time
import urllib.request
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.vllm_runs.loads import Call
from bench.vllm_runs.measured import Stream, summary

STARTED_WITHIN_S = 300.0
"""27 s on an idle machine of two cores, 131 s on a busy one."""
QUIET = {
    "VLLM_CPU_KVCACHE_SPACE": "1", "HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
}  # fmt: skip
POOL = ("--block-size", "32", "--num-gpu-blocks-override", "81", "--max-model-len", "1024")
"""80 usable blocks of 32 tokens."""
BATCH = ("--max-num-batched-tokens", "512", "--max-num-seqs", "32", "--enforce-eager")


@dataclass(frozen=True, slots=True)
class Server:
    url: str
    process: subprocess.Popen[bytes]
    log: Path

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def get(self, path: str) -> str:
        with urllib.request.urlopen(self.url + path, timeout=10) as reply:
            text: str = reply.read().decode()
        return text

    def metrics(self) -> dict[str, float]:
        """Name with labels but those that every sample has -> value."""
        found = {}
        for line in self.get("/metrics").splitlines():
            if not line.startswith("#"):
                name, _, value = line.rpartition(" ")
                name = re.sub(r'(engine|model_name)="[^"]*",?', "", name).replace(",}", "}").replace("{}", "")
                found[name] = float(value)
        return found


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


@contextmanager
def server(python: str, model: str, log: Path, *flags: str, env: dict[str, str] | None = None) -> Iterator[Server]:
    """Started, ready, and gone at the end with all its processes."""
    port = free_port()
    command = [python, "-m", "vllm.entrypoints.openai.api_server", "--model", model, "--served-model-name", "m"]
    command += ["--host", "127.0.0.1", "--port", str(port), "--disable-uvicorn-access-log", *POOL, *BATCH, *flags]
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, **QUIET, **(env or {})},
            start_new_session=True,
        )
    started = Server(f"http://127.0.0.1:{port}", process, log)
    try:
        wait_until_ready(started)
        yield started
    finally:
        stop(process)


def wait_until_ready(started: Server) -> None:
    began = time.monotonic()
    while time.monotonic() - began < STARTED_WITHIN_S:
        if started.process.poll() is not None:
            raise RuntimeError(f"vLLM ended with {started.process.returncode}:\n{started.log.read_text()[-4000:]}")
        try:
            started.get("/health")
        except OSError:
            time.sleep(0.5)
        else:
            return
    raise TimeoutError(f"vLLM is not ready within {STARTED_WITHIN_S} s:\n{started.log.read_text()[-4000:]}")


def stop(process: subprocess.Popen[bytes]) -> None:
    """The server and what it started, which has a session of its own."""
    for which, patience_s in ((signal.SIGTERM, 20.0), (signal.SIGKILL, 10.0)):
        try:
            os.killpg(process.pid, which)
        except ProcessLookupError:
            break
        try:
            process.wait(patience_s)
        except subprocess.TimeoutExpired:
            continue
    process.wait()


def body_of(index: int, call: Call, seed: object) -> dict[str, Any]:
    """A prompt of exactly so many tokens that no other shares, and an answer of exactly so many."""
    source = random.Random(f"prompt {seed} {index}")
    shared = [100 + at % 900 for at in range(call.shared_tokens)]
    prompt = shared + [source.randrange(1000, 20_000) for _ in range(call.prompt_tokens - call.shared_tokens)]
    return {
        "model": "m",
        "prompt": prompt,
        "max_tokens": call.output_tokens,
        "temperature": 0,
        "ignore_eos": True,
        "stream": True,
        "vllm_xargs": {"tidegate_max_tokens": call.declared_tokens},
    }


async def one(port: int, body: dict[str, Any], began_s: float) -> Stream:
    """One streamed completion. Raises RuntimeError for anything but a whole answer."""
    content = json.dumps(body).encode()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    lines = ("POST /v1/completions HTTP/1.1", "host: 127.0.0.1", "content-type: application/json", "connection: close")
    writer.write("\r\n".join([*lines, f"content-length: {len(content)}", "", ""]).encode() + content)
    try:
        return await _streamed(reader, began_s)
    finally:
        writer.close()


async def _streamed(reader: asyncio.StreamReader, began_s: float) -> Stream:
    stream, is_whole = Stream(began_s=time.monotonic() - began_s), False
    async for line in reader:
        if line.startswith(b"data: [DONE]"):
            is_whole = True
        elif line.startswith(b"data: {") and b'"choices"' in line:
            stream.token(0, time.monotonic() - began_s)
        elif line.startswith((b"data: {", b"HTTP/1.1 4", b"HTTP/1.1 5")):
            raise RuntimeError(line.decode())
    if not is_whole:
        raise RuntimeError("a stream without its end")
    return stream


async def load(port: int, calls: list[Call], clients: int, seed: object) -> dict[str, Any]:
    """A closed loop of ``clients``, all calls in order."""
    waiting = deque(enumerate(calls))
    streams: list[Stream] = []
    began = time.monotonic()

    async def client(place: int) -> None:
        # They come in order, so that the engine's queue is the same in every run.
        await asyncio.sleep(place * 0.02)
        while waiting:
            index, call = waiting.popleft()
            streams.append(await one(port, body_of(index, call, seed), began))

    await asyncio.gather(*(client(place) for place in range(clients)))
    return summary(streams, time.monotonic() - began)


def run(started: Server, calls: list[Call], clients: int, seed: object) -> dict[str, Any]:
    """The load, and what the engine counted meanwhile."""
    before = started.metrics()
    found = asyncio.run(load(started.port, calls, clients, seed))
    time.sleep(1.0)
    after = started.metrics()

    def added(name: str) -> int:
        return int(after.get(name, 0.0) - before.get(name, 0.0))

    found["steps"] = added("vllm:iteration_tokens_total_count")
    found["preemptions"] = added("vllm:num_preemptions_total")
    del found["preempted"]  # the histogram's first bucket holds none and one
    found["ledger"] = {name: value for name, value in after.items() if name.startswith("tidegate_kv_")}
    return found
