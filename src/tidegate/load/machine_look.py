"""One look at the machine that sends, which is the target's too where both stand on one: its CPUs and GPUs."""

from __future__ import annotations

import asyncio
import shutil
from dataclasses import dataclass, field
from pathlib import Path

from tidegate.errors import EngineError
from tidegate.load.engine_look import Figures

PERCENT, MIB, WATTS = "%", "MiB", "W"
QUERY = "--query-gpu=index,utilization.gpu,memory.used,power.draw"
SMI_WITHIN_S = 4.0
STAT = Path("/proc/stat")
IDLE_FIELDS = (3, 4)
"""Of the first line of /proc/stat: idle, and waiting for a disk."""


@dataclass(slots=True)
class CpuLook:
    """Time that all CPUs were busy since the look before, whoever used them."""

    title: str = "CPUs of the machine that sends"
    every_s: float = 1.0
    stat: Path = STAT
    last: tuple[int, int] | None = field(default=None, init=False)

    async def read(self) -> Figures:
        """Part of ``Look``. The first look only begins to count."""
        try:
            ticks = [int(text) for text in self.stat.read_text(encoding="ascii").split("\n", 1)[0].split()[1:9]]
        except (OSError, ValueError) as error:
            raise EngineError(f"{self.stat} tells no CPU times here") from error
        total, idle = sum(ticks), sum(ticks[place] for place in IDLE_FIELDS)
        before, self.last = self.last, (total, idle)
        if before is None or total == before[0]:
            return {}
        return {(PERCENT, "busy"): 100 * (1 - (idle - before[1]) / (total - before[0]))}


@dataclass(slots=True)
class GpuLook:
    """As ``nvidia-smi`` tells."""

    title: str = "GPUs of the machine that sends"
    every_s: float = 2.0
    command: str = "nvidia-smi"

    async def read(self) -> Figures:
        """Part of ``Look``."""
        path = shutil.which(self.command)
        if path is None:
            raise EngineError("no GPU here (there is no nvidia-smi)")
        process = await asyncio.create_subprocess_exec(
            path,
            QUERY,
            "--format=csv,noheader,nounits",
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        try:
            async with asyncio.timeout(SMI_WITHIN_S):
                output, _ = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        text = output.decode("utf-8", "replace")
        if process.returncode:
            raise EngineError(f"nvidia-smi: {text.strip()[:200]}")
        return gpu_figures(text)


def gpu_figures(text: str) -> Figures:
    """A line for each GPU. What a GPU does not tell (``[N/A]``) is left out."""
    found: Figures = {}
    for line in text.splitlines():
        index, *values = (part.strip() for part in line.split(","))
        for unit, name, value in zip((PERCENT, MIB, WATTS), ("utilisation", "memory", "power"), values, strict=False):
            try:
                found[unit, f"GPU {index}: {name}"] = float(value)
            except ValueError:
                continue
    return found
