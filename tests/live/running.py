"""The real engine alone, and the whole service, as processes of their own on real time."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tidegate.engines.llamacpp.model_file import model_file
from tidegate.engines.llamacpp.options import Options
from tidegate.engines.loopback import free_port

STARTED_WITHIN_S = 90.0
CHAT = "/v1/chat/completions"
MODEL = "smollm2"


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes
    took_s: float

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def call(url: str, path: str, body: object = None, headers: dict[str, str] | None = None) -> Answer:
    """GET, or POST of ``body`` as JSON."""
    began = time.monotonic()
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=180)
    try:
        content = None if body is None else json.dumps(body).encode()
        connection.request("GET" if body is None else "POST", path, content, headers or {})
        reply = connection.getresponse()
        whole = reply.read()
    finally:
        connection.close()
    named = {name.lower(): value for name, value in reply.getheaders()}
    return Answer(reply.status, named, whole, time.monotonic() - began)


class Exchange:
    """A request whose connection the test holds in its hand."""

    def __init__(self, url: str, body: object, headers: dict[str, str] | None = None, path: str = CHAT) -> None:
        parts = urlsplit(url)
        content = json.dumps(body).encode()
        lines = [f"POST {path} HTTP/1.1", f"host: {parts.netloc}", f"content-length: {len(content)}"]
        lines += [f"{name}: {value}" for name, value in {"content-type": "application/json", **(headers or {})}.items()]
        self.began = time.monotonic()
        self.seen = b""
        self.socket = socket.create_connection((parts.hostname or "", parts.port or 0), timeout=180)
        self.socket.sendall("\r\n".join(lines).encode() + b"\r\n\r\n" + content)

    def read_events(self, count: int) -> float:
        """Read until so many events with data have come; seconds since the request."""
        while self.seen.count(b"data: ") < count:
            piece = self.socket.recv(65536)
            assert piece, self.seen
            self.seen += piece
        return time.monotonic() - self.began

    def read_all(self) -> bytes:
        """Until the last chunk or the end of the connection."""
        while not self.seen.endswith(b"\r\n0\r\n\r\n") and (piece := self.socket.recv(65536)):
            self.seen += piece
        self.socket.close()
        return self.seen

    def leave(self) -> float:
        """Close it; when that was."""
        self.socket.close()
        return time.monotonic()


def until(condition: Callable[[], bool], within_s: float, every_s: float = 0.05) -> float:
    """Wait for ``condition``; how long it took. Fails after ``within_s``."""
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < within_s, f"not within {within_s} s"
        time.sleep(every_s)
    return time.monotonic() - began


def said(text: str, **fields: object) -> dict[str, object]:
    """The body of a chat request with one message."""
    return {"model": MODEL, "messages": [{"role": "user", "content": text}], **fields}


def long_text(words: int, salt: object) -> str:
    """Some 3 tokens a word, and no prefix that an earlier prompt had."""
    return f"{salt} " + " ".join(f"word{(index * 7) % 97}" for index in range(words))


@dataclass
class Engine:
    """The embedded engine without a gateway."""

    options: Options
    process: subprocess.Popen[bytes]
    ready_s: float

    @property
    def url(self) -> str:
        return self.options.address.url

    @property
    def key(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self.options.api_key}"}

    def running(self) -> int:
        """Sequences that the engine itself says it runs. A look disturbs its disconnect timer."""
        slots = call(self.url, "/slots", headers=self.key).json
        return sum(slot["is_processing"] for slot in slots)

    def figure(self, name: str) -> float:
        page = call(self.url, "/metrics", headers=self.key).body.decode()
        return float(next(line.split()[1] for line in page.splitlines() if line.startswith(f"llamacpp:{name} ")))


@contextmanager
def engine(**fields: Any) -> Iterator[Engine]:
    """``fields``: of its ``Options``, where they differ."""
    options = Options(model=str(model_file()), **fields)
    launch = options.launch("engine")
    began = time.monotonic()
    process = subprocess.Popen(
        launch.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, **launch.env}
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(launch.first_line)
        process.stdin.flush()
        assert json.loads(process.stdout.readline()) == {"listening": options.address.url}
        yield Engine(options, process, time.monotonic() - began)
    finally:
        process.stdin.close()
        process.wait(10)
        process.stdout.close()


@dataclass
class Service:
    """``tidegate serve`` with everything that it started."""

    process: subprocess.Popen[bytes]
    url: str
    admin: str
    log: Path
    ready_s: float = 0.0
    seen_pids: set[int] = field(default_factory=set)

    def view(self) -> dict[str, Any]:
        view: dict[str, Any] = call(self.admin, "/admin/view").json
        return view

    def replica(self) -> dict[str, Any]:
        (replica,) = self.view()["replicas"].values()
        found: dict[str, Any] = replica
        return found

    def is_idle(self) -> bool:
        """Nothing runs, nothing waits, no slot is held, and none is suspected of foreign load."""
        view = self.view()
        (replica,) = view["replicas"].values()
        slots = replica["slots"]
        held = replica["in_flight"] + replica["aborting"] + slots["used"] + slots["reserved"] + slots["foreign"]
        return not (view["open_requests"] or view["permits"] or held) and bool(slots["free"] == slots["total"])

    def children(self, module: str) -> list[int]:
        """Processes started by the service whose command names ``module``."""
        tasks = Path(f"/proc/{self.process.pid}/task").glob("*/children")
        pids = [int(pid) for task in tasks for pid in task.read_text().split()]
        return [pid for pid in pids if module in Path(f"/proc/{pid}/cmdline").read_bytes().decode()]


@contextmanager
def service(
    log: Path, *arguments: str, env: dict[str, str] | None = None, within_s: float = STARTED_WITHIN_S
) -> Iterator[Service]:
    port, admin_port = free_port(), free_port()
    command = [sys.executable, "-c", "from tidegate.cli.main import app; app()", "serve"]
    ports = ["--port", str(port), "--admin-port", str(admin_port)]
    began = time.monotonic()
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*command, *ports, *arguments],
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=log.parent,
            env={**os.environ, **(env or {})},
        )
    running = Service(process, f"http://127.0.0.1:{port}", f"http://127.0.0.1:{admin_port}", log)
    try:
        until(lambda: is_ready(running), within_s)
        running.ready_s = time.monotonic() - began
        yield running
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        try:
            process.wait(45)
        except subprocess.TimeoutExpired:
            process.kill()
            raise


def is_ready(running: Service) -> bool:
    assert running.process.poll() is None, running.log.read_text()
    try:
        return call(running.url, "/ready").status == 200
    except OSError:
        return False
