"""An asyncio event loop in which waiting takes no time.

``time()`` stands still while callbacks run and jumps to the next timer when none is left. A test
of an hour's silence takes as long as its callbacks, and runs the same way every time.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar

Result = TypeVar("Result")


class StalledError(RuntimeError):
    """Everybody waits, and no timer is set: in real time this test would hang."""


class _Jump(selectors.BaseSelector):
    """Instead of waiting for files it moves the clock."""

    def __init__(self) -> None:
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise StalledError("nothing is left to happen: a future is awaited that nobody will set")
        self.now += max(0.0, timeout)
        return []

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return selectors.SelectorKey(fileobj, 0, events, data)

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return selectors.SelectorKey(fileobj, 0, 0, None)

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return {}


class VirtualLoop(asyncio.SelectorEventLoop):
    """No sockets, no threads, no signals: only callbacks, timers, tasks and ``memory_pair`` transports."""

    def __init__(self, start_s: float = 1000.0) -> None:
        """``start_s``: what the clock shows first; not zero, so that a zero stands out as "never"."""
        self._jump = _Jump()
        self._jump.now = start_s
        super().__init__(self._jump)

    def time(self) -> float:
        return self._jump.now


def run_virtually(main: Coroutine[Any, Any, Result]) -> Result:
    """``asyncio.run`` on a ``VirtualLoop``. Raises ``StalledError`` where real time would hang."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)
