"""A real vLLM server with the plugin, and Tidegate in front of it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.vllm_runs import place, server
from bench.vllm_runs.rows import PLUGIN
from bench.vllm_runs.server import Server
from tests.live.running import CHAT, Answer, Service, call, service

MOST_QUEUED = 12
RESERVATION = {"rule": "peak", "lengths": "declared", "log_every_steps": 0}


@dataclass
class Protected:
    """One engine and one service; each test leaves both idle, or dead."""

    engine: Server
    service: Service

    def stop_engine_process(self, title: str) -> list[int]:
        """Processes of the engine whose title begins so."""
        return [pid for pid in session_of(self.engine.process) if title_of(pid).startswith(title)]


@contextmanager
def vllm(folder: Path, *flags: str, rule: str = "peak") -> Iterator[Server]:
    settings = json.dumps({"tidegate": {**RESERVATION, "rule": rule}})
    plugin = ("--scheduler-cls", PLUGIN, "--additional-config", settings, "--max-num-queued-reqs", str(MOST_QUEUED))
    # The pip-installed checkout is the one under test in .venv-vllm; elsewhere the path says so.
    env = {"PYTHONPATH": str(place.ROOT / "src")}
    log = folder / "vllm.log"
    with server.server(str(place.python()), str(place.model()), log, *plugin, *flags, env=env) as started:
        yield started


@contextmanager
def protected(folder: Path, *flags: str, rule: str = "peak", **replica: object) -> Iterator[Protected]:
    """``replica``: what the configuration says of it besides its URL."""
    with vllm(folder, *flags, rule=rule) as engine:
        file = folder / "tidegate.yaml"
        file.write_text(json.dumps({"upstreams": {"m": {"replicas": [{"url": engine.url, **replica}]}}}))
        with service(folder / "serve.log", "--config", str(file)) as front:
            yield Protected(engine, front)


def session_of(process: subprocess.Popen[bytes]) -> list[int]:
    """Every process that the server started, itself among them."""
    return session_of_pid(process.pid)


def session_of_pid(leader: int) -> list[int]:
    """Every process of the session that it leads."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if fields[3] == str(leader) and fields[0] != "Z":
            found.append(int(path.parent.name))
    return found


def title_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


def asked(words: str, **fields: Any) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": words}], "temperature": 0, **fields}


def story(index: int, tokens: int, **fields: Any) -> dict[str, Any]:
    """Exactly so many tokens."""
    return asked(f"Tell story {index}.", max_tokens=tokens, ignore_eos=True, **fields)


def post(url: str, body: object, **headers: str) -> Answer:
    """A chat request; vLLM wants to be told that it is JSON."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return call(url, CHAT, body, {"content-type": "application/json", **named})


def figures(engine: Server) -> dict[str, float]:
    return {name: value for name, value in engine.metrics().items() if name.startswith("tidegate_kv_")}


def answers(url: str) -> bool:
    try:
        return call(url, "/health").status < 500
    except OSError:
        return False
