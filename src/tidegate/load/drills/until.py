"""Waiting for something to hold, with an end."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from tidegate.errors import EngineError

LOOK_EVERY_S = 0.05


async def until(holds: Callable[[], Awaitable[bool]], within_s: float, problem: str) -> float:
    """Seconds that it took. Raises EngineError with ``problem`` where it does not come to hold ``within_s``."""
    began = time.monotonic()
    while not await holds():
        if time.monotonic() - began > within_s:
            raise EngineError(f"{problem} within {within_s:g} s")
        await asyncio.sleep(LOOK_EVERY_S)
    return time.monotonic() - began
