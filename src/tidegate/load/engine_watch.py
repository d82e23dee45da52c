"""Readings of engines and machines over a run, beside it: they never slow it, and never end it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from types import TracebackType
from typing import Any

from tidegate.errors import TidegateError
from tidegate.load.engine_look import EngineLook, Look, look_of
from tidegate.load.machine_look import CpuLook, GpuLook
from tidegate.load.target import Target

EVERY_S = 5.0
GIVEN_UP_AFTER = 3
"""Failures before the first success. Later ones are gaps: an engine may be gone for a while, and come back."""


class EngineWatch:
    """A context manager; ``readings`` is what belongs into ``Result.engine``."""

    def __init__(
        self, targets: Sequence[Target], every_s: float = EVERY_S, looks: Sequence[Look] | None = None
    ) -> None:
        self._looks = [*map(look_of, targets), CpuLook(), GpuLook()] if looks is None else [*looks]
        self._every_s = every_s
        self._zero = 0.0
        self._tasks: list[asyncio.Task[None]] = []
        self._lines: dict[tuple[str, str], dict[str, list[tuple[float, float]]]] = {}
        self._notes: list[str] = []

    async def __aenter__(self) -> EngineWatch:
        self._zero = asyncio.get_running_loop().time()
        self._tasks = [asyncio.create_task(self._watch(look)) for look in self._looks]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def readings(self) -> dict[str, Any]:
        """``readings``: title, unit and lines of (seconds since the run began, value); ``kinds`` of engines; notes."""
        return {
            "readings": [
                {"title": title, "unit": unit, "lines": lines} for (title, unit), lines in self._lines.items()
            ],
            "kinds": {
                look.title: look.engine.kind for look in self._looks if isinstance(look, EngineLook) and look.engine
            },
            "notes": [*self._notes],
        }

    async def _watch(self, look: Look) -> None:
        failed = seen = 0
        problem = ""
        try:
            while seen or failed < GIVEN_UP_AFTER:
                try:
                    self._keep(look.title, await look.read())
                    seen += 1
                except (OSError, TidegateError) as error:
                    failed += 1
                    problem = str(error) or type(error).__name__
                await asyncio.sleep(max(self._every_s, look.every_s))
        finally:
            if failed:
                share = f"{failed} of {failed + seen} looks told nothing, the last time: " if seen else ""
                self._notes.append(f"{look.title}: {share}{problem}")

    def _keep(self, title: str, figures: dict[tuple[str, str], float]) -> None:
        at_s = round(asyncio.get_running_loop().time() - self._zero, 3)
        for (unit, name), value in figures.items():
            self._lines.setdefault((title, unit), {}).setdefault(name, []).append((at_s, value))
