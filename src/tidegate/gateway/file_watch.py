"""Notices that the configuration file changed, by edit, atomic rename or a swapped symbolic link."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

INTERVAL_S = 0.5


def stamp(file: Path) -> tuple[int, int, int] | None:
    """Differs after any change of the content; None while there is no such file."""
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size


async def watch(file: Path, on_change: Callable[[], Awaitable[object]], interval_s: float = INTERVAL_S) -> None:
    """Call ``on_change`` after every change, for ever, once the file has been the same for ``interval_s``.

    A file that is gone, or changes still, is an edit that is not finished: editors empty a file before they write it.
    """
    known = before = stamp(file)
    while True:
        await asyncio.sleep(interval_s)
        found = stamp(file)
        if found is not None and found == before and found != known:
            known = found
            await on_change()
        before = found
