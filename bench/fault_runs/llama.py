"""The embedded llama.cpp as a process that can be killed, frozen and started again on its port."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from dataclasses import replace
from types import TracebackType

from tidegate.engines.llamacpp.model_file import model_file
from tidegate.engines.llamacpp.options import Options
from tidegate.engines.llamacpp.server import LlamaServer

SEQUENCES = 4


class LlamaProcess:
    """As ``UpstreamProcess``, of a real engine: what it does between its birth and its death is its own."""

    kind = LlamaServer.kind

    def __init__(self, api_key: str | None = None) -> None:
        """``api_key``: None gives it one of its own."""
        options = Options(model=str(model_file()))
        self._options = options if api_key is None else replace(options, api_key=api_key)
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> LlamaProcess:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.kill()

    @property
    def url(self) -> str:
        return self._options.address.url

    @property
    def api_key(self) -> str:
        return self._options.api_key

    def start(self) -> None:
        """Returns when it listens, with the model loaded."""
        launch = self._options.launch("engine")
        process = subprocess.Popen(
            launch.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, **launch.env}
        )
        self._process = process
        if process.stdin is None or process.stdout is None:
            raise RuntimeError("it has no pipes")
        process.stdin.write(launch.first_line)
        process.stdin.flush()
        if json.loads(process.stdout.readline()) != {"listening": self.url}:
            raise RuntimeError("it did not come up")

    def freeze(self) -> None:
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._signal(signal.SIGCONT)

    def kill(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait(10)
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(number)
