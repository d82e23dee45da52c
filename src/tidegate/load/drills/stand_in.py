"""An engine without a model for a drill: its text and pace are known, and it misbehaves on command."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from tidegate.engines.llamacpp.model_file import DEMO_ALIAS
from tidegate.engines.loopback import free_port
from tidegate.errors import EngineError
from tidegate.testing.faults import Fault
from tidegate.testing.upstream_process import UpstreamProcess

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class StandIn:
    """Implements ``setup.Engine`` with ``testing.faulty_upstream``. ``options``: that one's."""

    api_key = ""

    def __init__(self, name: str, **options: object) -> None:
        self.name = name
        self.lives = 0
        self._process = UpstreamProcess(**{"model": DEMO_ALIAS, **options})
        self._process.url = f"http://127.0.0.1:{free_port()}"

    @property
    def url(self) -> str:
        return self._process.url

    @property
    def pid(self) -> int | None:
        return self._process.pid or None

    @property
    def resident_bytes(self) -> int | None:
        return resident_bytes(self._process.pid)

    @property
    def is_serving(self) -> bool:
        return bool(self._process.pid)

    async def start(self) -> None:
        """Returns when it serves. Raises EngineError."""
        if self._process.pid:
            return
        try:
            await asyncio.to_thread(self._process.start)
        except (RuntimeError, OSError) as error:
            raise EngineError(f"{self.name}: {error}") from None
        self.lives += 1

    async def close(self) -> None:
        await asyncio.to_thread(self._process.kill)

    async def fail(self, fault: Fault) -> None:
        """Misbehave so from here on."""
        await asyncio.to_thread(self._process.fail, fault)


def paced(name: str) -> StandIn:
    """One of several that are alike, as fast as a small model on a quiet machine."""
    return StandIn(name, slots=8, first_s=0.3, pace_s=0.05)


def resident_bytes(pid: int | None) -> int | None:
    """None where there is no such process."""
    if not pid:
        return None
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE_BYTES
    except OSError:
        return None
