"""``tidegate serve`` as people run it: a process of its own, its lines, its two ports."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tidegate.wire.fetch import Reply, fetch

WITHIN_S = 30.0
"""For a start of two interpreters on a machine that is busy with other tests."""
RUN = "from tidegate.cli.main import app; app()"


class Served:
    """A running ``tidegate serve`` and everything it printed."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.lines: list[str] = []
        self._news = asyncio.Condition()
        self._reader = asyncio.create_task(self._read())

    async def _read(self) -> None:
        stdout = self.process.stdout
        while stdout is not None and (line := await stdout.readline()):
            self.lines.append(line.decode().rstrip())
            async with self._news:
                self._news.notify_all()
        async with self._news:
            self._news.notify_all()

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    async def printed(self, text: str, times: int = 1) -> None:
        """Wait until ``text`` stands in so many lines; fails when the process ends first."""
        try:
            async with asyncio.timeout(WITHIN_S), self._news:
                await self._news.wait_for(lambda: self._count(text) >= times or self.process.returncode is not None)
        except TimeoutError:
            pytest.fail(f"{text!r} was not printed:\n{self.text}")
        assert self._count(text) >= times, self.text

    def _count(self, text: str) -> int:
        return sum(text in line for line in self.lines)

    def url(self, pattern: str) -> str:
        found = re.search(pattern + r" at (http://[\w.:\[\]]+)", self.text)
        assert found, self.text
        return found.group(1)

    @property
    def api(self) -> str:
        return self.url("OpenAI API")

    @property
    def admin(self) -> str:
        return self.url("metrics and admin")

    async def chat(self, model: str, request_id: str, stream: bool = False) -> Reply:
        body = {"model": model, "stream": stream, "messages": [{"role": "user", "content": f"Say {request_id}."}]}
        headers = {"content-type": "application/json", "x-request-id": request_id}
        where = f"{self.api}/v1/chat/completions"
        return await fetch(where, method="POST", headers=headers, body=json.dumps(body).encode(), timeout_s=WITHIN_S)

    async def ask(self, path: str, method: str = "GET", body: object = None) -> tuple[int, Any]:
        """Status and JSON of an admin path."""
        sent = b"" if body is None else json.dumps(body).encode()
        reply = await fetch(f"{self.admin}{path}", method=method, body=sent, timeout_s=WITHIN_S)
        return reply.status, json.loads(reply.body)

    async def ended(self) -> int:
        """Its exit status, once everything it printed has been read."""
        async with asyncio.timeout(WITHIN_S):
            await self._reader
            return await self.process.wait()

    async def stop(self, number: int = signal.SIGINT) -> int:
        self.process.send_signal(number)
        return await self.ended()


@asynccontextmanager
async def serving(*arguments: str, folder: Path) -> AsyncIterator[Served]:
    """Run ``tidegate serve ARGUMENTS`` in ``folder``; ended at the end, whatever happens."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        RUN,
        "serve",
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        cwd=folder,
        env={name: value for name, value in os.environ.items() if not name.startswith(("TIDEGATE_", "VOLC_"))},
    )
    served = Served(process)
    try:
        yield served
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
            await served.ended()
