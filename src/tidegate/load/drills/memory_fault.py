"""Memory that runs out under a real cap, until the engine is ended by it."""

from __future__ import annotations

import asyncio
import contextlib
import resource
import sys
from dataclasses import replace
from pathlib import Path

import msgspec

from tidegate.errors import EngineError, TidegateError
from tidegate.load.drills.drill_engine import OwnEngine
from tidegate.load.drills.memory_cap import MemoryCap
from tidegate.load.drills.own_deployment import OwnDeployment
from tidegate.load.drills.steady_load import chat_body
from tidegate.load.drills.until import until

MEMORY_CAP = "memory-cap"
HEADROOM_BYTES = 48 << 20
"""Above what the engine holds; the rest is filled by another process in its container."""
HOG_BYTES = 4 * HEADROOM_BYTES
ENDED_WITHIN_S = 30.0
CROWD = 8
"""Prompts at once, so that an engine that may map no more memory has to."""


class MemoryRunsOut:
    """Where control groups can be made, the kernel's OOM killer ends the engine, and its next life is in the same
    group. Elsewhere its address space is closed to growth (RLIMIT_AS), and an allocation that fails ends it."""

    name = MEMORY_CAP

    def why_not(self) -> str:
        return "" if sys.platform == "linux" else "it needs Linux"

    async def break_(self, own: OwnDeployment, replica: str | None) -> None:
        """Returns when the engine has ended. Raises EngineError where it survives."""
        engine = own.embedded(replica)
        pid = engine.pid
        if pid is None:
            raise EngineError(f"{replica} does not run")
        if engine.cap is None:
            own.remarks.append("no control groups here: the engine's address space was capped instead (RLIMIT_AS)")
            await _close_address_space(own, engine, pid)
        else:
            own.remarks.append(f"capped at {HEADROOM_BYTES >> 20} MiB above what it held, in {engine.cap.folder}")
            await _fill(engine, engine.cap, pid)

    async def restore(self, own: OwnDeployment, replica: str | None) -> None:
        engine = own.embedded(replica)
        if engine.cap is not None:
            engine.cap.lift()
        await engine.start()


async def _fill(engine: OwnEngine, cap: MemoryCap, pid: int) -> None:
    _choose(pid)
    cap.limit(cap.used_bytes + HEADROOM_BYTES)
    command = (sys.executable, "-m", "tidegate.load.drills.memory_hog", str(cap.folder), str(HOG_BYTES))
    hog = await asyncio.create_subprocess_exec(*command, stdin=asyncio.subprocess.PIPE)
    try:
        await until(lambda: _has_ended(pid), ENDED_WITHIN_S, f"{engine.name} was not ended by its memory cap")
    finally:
        with contextlib.suppress(ProcessLookupError):
            hog.kill()
        await hog.wait()


async def _close_address_space(own: OwnDeployment, engine: OwnEngine, pid: int) -> None:
    _map_no_more(pid)
    crowd = [asyncio.create_task(_press(own, engine, number)) for number in range(CROWD)]
    try:
        await until(lambda: _has_ended(pid), ENDED_WITHIN_S, f"{engine.name} was not ended by its memory cap")
    finally:
        for each in crowd:
            each.cancel()
        await asyncio.gather(*crowd, return_exceptions=True)


async def _press(own: OwnDeployment, engine: OwnEngine, number: int) -> None:
    """Prompts that need memory, until the engine is gone."""
    address = own.engine(engine.name)
    if address is None:
        return
    text = f"{number} " + "word " * 400
    body = b'{"model":' + msgspec.json.encode(own.target.model) + chat_body(text, 2, is_stream=False)
    with contextlib.suppress(OSError, TidegateError):
        while True:
            await replace(address, timeout_s=ENDED_WITHIN_S).ask("/v1/chat/completions", body)


def _choose(pid: int) -> None:
    """The kernel's first choice: of two in a group it ends the larger one, and that may be the other. This life's."""
    with contextlib.suppress(OSError):
        Path(f"/proc/{pid}/oom_score_adj").write_text("1000")


def _map_no_more(pid: int) -> None:
    mapped = int(Path(f"/proc/{pid}/statm").read_text().split()[0]) * resource.getpagesize()
    resource.prlimit(pid, resource.RLIMIT_AS, (mapped, mapped))


async def _has_ended(pid: int) -> bool:
    return not _runs(pid)


def _runs(pid: int) -> bool:
    """A process that has ended and was not waited for yet does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False
