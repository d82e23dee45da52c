"""``faulty_upstream`` as a process that a test or a measurement holds in its hand."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

from tidegate.testing.faults import Fault

ANSWERS_WITHIN_S = 10.0


class UpstreamProcess:
    """Started by ``with``. ``options``: those of ``faulty_upstream``, such as ``slots=8, pace_s=0.02``.

    The calls wait for the process and are not for an event loop; ``asyncio.to_thread`` takes them there.
    """

    def __init__(self, **options: object) -> None:
        self._options = [
            text for name, value in options.items() for text in (f"--{name.replace('_', '-')}", f"{value}")
        ]
        self._process: subprocess.Popen[bytes] | None = None
        self.url = ""
        self._control = ""

    def __enter__(self) -> UpstreamProcess:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.kill()

    @property
    def pid(self) -> int:
        """0 while it does not run."""
        return 0 if self._process is None else self._process.pid

    def start(self) -> None:
        """Start it, or start it again on the port it had. Raises RuntimeError when it does not come up."""
        port = str(urlsplit(self.url).port or 0)
        command = [sys.executable, "-m", "tidegate.testing.faulty_upstream", *self._options, "--port", port]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE)  # noqa: S603 - our own module, no shell
        line = self._process.stdout.readline() if self._process.stdout is not None else b""
        if not line:
            self.kill()
            raise RuntimeError(f"{' '.join(command)} did not start")
        told = json.loads(line)
        self.url, self._control = told["url"], told["control"]

    def fail(self, fault: Fault) -> None:
        """Misbehave so from here on."""
        self._ask("PUT", "/fault", {"fault": fault.value})

    def heal(self) -> None:
        self.fail(Fault.NONE)

    def log(self) -> list[dict[str, Any]]:
        """Every request for an answer since it started (``Asked``)."""
        found: list[dict[str, Any]] = self._ask("GET", "/log", None)
        return found

    def freeze(self) -> None:
        """SIGSTOP: connections stay open and are even accepted by the kernel, and nothing answers."""
        os.kill(self.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def kill(self) -> None:
        """SIGKILL; harmless where it does not run."""
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait(ANSWERS_WITHIN_S)
        if process.stdout is not None:
            process.stdout.close()

    def _ask(self, method: str, path: str, body: object) -> Any:
        connection = http.client.HTTPConnection(urlsplit(self._control).netloc, timeout=ANSWERS_WITHIN_S)
        try:
            connection.request(method, path, None if body is None else json.dumps(body).encode())
            reply = connection.getresponse()
            text = reply.read()
        finally:
            connection.close()
        if reply.status != 200:
            raise RuntimeError(f"{method} {path} was answered {reply.status}: {text.decode()}")
        return json.loads(text)
