"""An event loop whose clock jumps to the next timer when nothing else is to be done."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")


class _Jump(selectors.DefaultSelector):
    """Does not sleep: it tells the loop how far to move its virtual clock."""

    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready and timeout is not None and timeout > 0:
            self._loop.virtual_s += timeout
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """For code without sockets: with real ones, time would jump while bytes are on their way."""

    def __init__(self) -> None:
        self.virtual_s = 1000.0
        super().__init__(_Jump(self))

    def time(self) -> float:
        return self.virtual_s


def run_virtual(body: Coroutine[Any, Any, Result]) -> Result:
    """``asyncio.run`` on virtual time."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(body)
