"""Work that a signal may not cut short: what was broken is put back first."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any


async def to_its_end(work: Coroutine[Any, Any, None]) -> None:
    """Finish ``work`` though we are cancelled meanwhile, and only then be cancelled."""
    task = asyncio.create_task(work)
    was_cancelled = False
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            was_cancelled = True
    task.result()
    if was_cancelled:
        raise asyncio.CancelledError
