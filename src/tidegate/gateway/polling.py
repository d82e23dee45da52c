"""Regular looks at every replica, more often while an abort waits for its confirmation.

Runs in the parent. Each replica has its own loop, so that one that hangs delays no other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Protocol

from tidegate.errors import TidegateError
from tidegate.policy.reading import Reading

INTERVAL_S = 0.5
SOON_INTERVAL_S = 0.1
SOON_FOR_S = 3.0
"""How long readings stay frequent after ``poll_soon``: the slots of an abort shall be free within it."""
READ_WITHIN_S = 2.0
STALE_AFTER_S = 10.0
"""An engine that is busy with a long prefill may answer no reading for seconds. Only silence that lasts
this long means that it is not ready (R6: stale metrics don't stop a replica)."""


class Source(Protocol):
    """An engine adapter, as far as polling needs one."""

    @property
    def look_every_s(self) -> float:
        """Shortest time between two looks that does the engine no harm."""

    async def read(self, now: float) -> Reading:
        """One look; ``now`` becomes ``Reading.at``. Raises TimeoutError when the engine is silent, and may raise
        TidegateError or OSError."""


class Polling:
    """``observe`` gets each reading under its replica's name, on the running loop."""

    def __init__(self, observe: Callable[[str, Reading], None]) -> None:
        self._observe = observe
        self._followed: dict[str, _Followed] = {}
        self.latest: dict[str, Reading] = {}
        """The last reading of each followed replica."""

    def follow(self, sources: Mapping[str, Source]) -> None:
        """Poll exactly these replicas from here on; one whose source is the same goes on undisturbed."""
        for name in [*self._followed]:
            if self._followed[name].source is not sources.get(name):
                self._followed.pop(name).task.cancel()
                self.latest.pop(name, None)
        for name, source in sources.items():
            if name not in self._followed:
                self._followed[name] = _Followed(name, source, self.take)

    def poll_soon(self, replica: str) -> None:
        """Look at this replica at once, and often for the next seconds."""
        followed = self._followed.get(replica)
        if followed is not None:
            followed.hurry()

    async def close(self) -> None:
        """Stop looking."""
        tasks = [followed.task for followed in self._followed.values()]
        self._followed.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def take(self, name: str, reading: Reading) -> None:
        """A reading that came by another way counts like any."""
        if name not in self._followed:
            return
        self.latest[name] = reading
        self._observe(name, reading)


class _Followed:
    """One replica and the task that looks at it."""

    def __init__(self, name: str, source: Source, take: Callable[[str, Reading], None]) -> None:
        self.name = name
        self.source = source
        self._take = take
        self._woken = asyncio.Event()
        self._hurry_until = 0.0
        self._last_answer_at = asyncio.get_running_loop().time()
        self.task = asyncio.get_running_loop().create_task(self._look_forever())

    def hurry(self) -> None:
        self._hurry_until = asyncio.get_running_loop().time() + SOON_FOR_S
        self._woken.set()

    async def _look_forever(self) -> None:
        while True:
            self._woken.clear()
            reading = await self._look()
            if reading is not None:
                self._take(self.name, reading)
            await self._pause()

    async def _look(self) -> Reading | None:
        now = asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout(READ_WITHIN_S):
                reading = await self.source.read(now)
        except TimeoutError:
            silent_s = now - self._last_answer_at
            if silent_s < STALE_AFTER_S:
                return None
            return Reading(at=now, ready=False, error=f"no reading for {silent_s:.0f} s")
        except (TidegateError, OSError) as error:
            return Reading(at=now, ready=False, error=str(error) or type(error).__name__)
        self._last_answer_at = now
        return reading

    async def _pause(self) -> None:
        hurries = asyncio.get_running_loop().time() < self._hurry_until
        try:
            async with asyncio.timeout(max(self.source.look_every_s, SOON_INTERVAL_S if hurries else INTERVAL_S)):
                # While in a hurry a further wake-up must not turn the cadence into a busy loop.
                await (asyncio.get_running_loop().create_future() if hurries else self._woken.wait())
        except TimeoutError:
            return
