"""A vLLM of our own is sent to sleep, which frees most of its GPU's memory, and woken again (SPEC S3-29)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from tidegate.engines.vllm.readings import VllmServer
from tidegate.errors import TidegateError

LOOK_EVERY_S = 0.1

Drain = Callable[[str, bool], Awaitable[bool]]
View = Callable[[], Awaitable[dict[str, Any] | None]]


class Sleeping:
    """``drain`` and ``view`` are those of the admin API; ``drain_s`` bounds how long requests of ours may finish."""

    def __init__(self, drain: Drain, view: View, drain_s: float) -> None:
        self._drain = drain
        self._view = view
        self._drain_s = drain_s

    async def order(self, replica: str, engine: VllmServer, on: bool) -> str:
        """Why it was not done; "" when it was. No request is cut off: a replica that stays busy stays awake."""
        try:
            if on:
                return await self._to_sleep(replica, engine)
            await engine.wake()
        except (OSError, TidegateError) as error:
            await self._drain(replica, False)
            return f"{replica}: {str(error) or type(error).__name__}"
        await self._drain(replica, False)
        return ""

    async def _to_sleep(self, replica: str, engine: VllmServer) -> str:
        await self._drain(replica, True)
        try:
            async with asyncio.timeout(self._drain_s):
                while not await self._is_idle(replica):  # noqa: ASYNC110 - the view of another process, no event of ours
                    await asyncio.sleep(LOOK_EVERY_S)
        except TimeoutError:
            await self._drain(replica, False)
            return f"{replica} still ran requests after {self._drain_s:g} s and stays awake"
        await engine.sleep()
        return ""

    async def _is_idle(self, replica: str) -> bool:
        view = await self._view()
        held = (view or {}).get("replicas", {}).get(replica)
        return held is not None and not held["in_flight"] and not held["aborting"]
