"""The comparison's mock engine and load client, both in C, as processes."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from bench.load_runs.streams import QUESTION

TOOLS = ("mock", "cli")
COMES_UP_WITHIN_S = 5.0


@dataclass(frozen=True, slots=True)
class Pace:
    """What the mock does with a stream; its own timers have whole milliseconds, rounded up."""

    tokens: int = 16
    first_ms: float = 20.0
    gap_ms: float = 5.0

    @property
    def whole_ms(self) -> float:
        """A gap before each token but the first, and one before the end."""
        return self.first_ms + self.tokens * self.gap_ms


class Mock:
    """Started by ``with``, in a folder of its own with both tools compiled in it."""

    def __init__(self, source: Path, folder: Path) -> None:
        for tool in TOOLS:
            shutil.copy(source / "scripts" / f"{tool}.c", folder)
            subprocess.run(["gcc", "-O2", "-w", "-o", folder / tool, folder / f"{tool}.c"], check=True)
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        body = folder / "body.json"
        body.write_bytes(b'{"model":"mock-model"' + QUESTION)
        self._body = body
        self.port = 0

    def __enter__(self) -> Mock:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        command = [str(self._folder / "mock"), str(self.port)]
        self._process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        ends_at = time.monotonic() + COMES_UP_WITHIN_S
        while True:
            try:
                self._get("/health")
                return self
            except OSError:
                if time.monotonic() > ends_at:
                    raise
                time.sleep(0.05)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def set_pace(self, pace: Pace) -> None:
        microseconds = f"gap_us={pace.gap_ms * 1000:.0f}&svc_us={pace.first_ms * 1000:.0f}"
        self._get(f"/ctl?chunks={pace.tokens}&{microseconds}")

    def client(self, rate: float, total: int) -> subprocess.Popen[str]:
        """The client in C under the same open loop; ``told`` reads what it measured."""
        command = [str(self._folder / "cli"), str(self.port)]
        options = ["-c", "400", "-n", str(total), "-r", str(rate), "-s", "-b", str(self._body)]
        return subprocess.Popen([*command, *options], stdout=subprocess.PIPE, text=True)

    def _get(self, path: str) -> bytes:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=5) as reply:
            return bytes(reply.read())


def told(client: subprocess.Popen[str]) -> dict[str, Any]:
    """Its one line of JSON, once it has ended."""
    found: dict[str, Any] = json.loads(client.communicate(timeout=60)[0].splitlines()[0])
    return found
