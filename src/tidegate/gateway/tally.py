"""Exact prompt lengths, from the engines' own tokenizers: beside the request path, and only where they decide.

One call to an engine takes milliseconds, so it runs in a task. What may be under way at a time is bounded in
number and in bytes; above that, and whenever no answer comes, the estimate has to do.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from typing import Protocol

from tidegate.engines.openai import OpenaiServer
from tidegate.engines.recognition import engine_of
from tidegate.errors import EngineError, TidegateError
from tidegate.gateway.settings import Endpoint
from tidegate.policy.reading import ReplicaConfig

COUNT_WITHIN_S = 2.0
"""A tokenizer counts some million tokens a second; an engine that takes longer is busy with other things."""
MOST_AT_ONCE = 8
LARGEST_BODY_BYTES = 1024 * 1024
"""An adapter that reads the body holds the loop for about 1 ms a megabyte."""
MOST_PENDING_BYTES = 4 * 1024 * 1024

Counts = tuple[int, ...]
"""Tokens of each prompt in a call."""


class Counter(Protocol):
    """An engine adapter, as far as counting needs one."""

    async def count_tokens(self, path: str, body: bytes) -> Counts | None:
        """None: it does not count. Raises TidegateError or OSError."""


def counter_at(endpoint: Endpoint) -> Counter:
    """The adapter of an endpoint. Raises ConfigError for a ``ca_file`` that cannot be read."""
    return engine_of(endpoint.kind, endpoint.address())


class Tally:
    """Owned by the gateway; ``serve`` tells it which engines there are."""

    def __init__(self, counter_at: Callable[[Endpoint], Counter] = counter_at) -> None:
        self._counter_at = counter_at
        self._counters: dict[Endpoint, Counter] = {}
        """Those that were asked once: a TLS context takes some 10 ms to make."""
        self._endpoints: dict[str, deque[Endpoint]] = {}
        """Engines that may count, by upstream; the first is asked first."""
        self._tasks: set[asyncio.Task[Counts | None]] = set()
        self._pending_bytes = 0

    def serve(self, endpoints: Iterable[Endpoint], replicas: Iterable[ReplicaConfig]) -> None:
        """Ask these from here on."""
        upstream_of = {replica.name: replica.upstream for replica in replicas}
        self._endpoints = {}
        for endpoint in endpoints:
            # Of other kinds no tokenizer is known, and with the clients' own keys we have none to ask with.
            if endpoint.kind != OpenaiServer.kind and not endpoint.is_passthrough and endpoint.name in upstream_of:
                self._endpoints.setdefault(upstream_of[endpoint.name], deque()).append(endpoint)
        known = {endpoint for endpoints in self._endpoints.values() for endpoint in endpoints}
        self._counters = {endpoint: counter for endpoint, counter in self._counters.items() if endpoint in known}

    def begin(self, upstream: str, path: str, body: bytes) -> asyncio.Task[Counts | None] | None:
        """Count the prompts of a call; the task's result is None when nobody could.

        None at once: no engine of this upstream counts, or too much is under way.
        """
        endpoints, size_bytes = self._endpoints.get(upstream), len(body)
        if endpoints is None or len(self._tasks) >= MOST_AT_ONCE or size_bytes > LARGEST_BODY_BYTES:
            return None
        if self._pending_bytes + size_bytes > MOST_PENDING_BYTES:
            return None
        self._pending_bytes += size_bytes
        task = asyncio.get_running_loop().create_task(self._count(endpoints, path, body))
        self._tasks.add(task)
        task.add_done_callback(partial(self._forget, size_bytes))
        return task

    def _forget(self, size_bytes: int, task: asyncio.Task[Counts | None]) -> None:
        self._tasks.discard(task)
        self._pending_bytes -= size_bytes

    async def _count(self, endpoints: deque[Endpoint], path: str, body: bytes) -> Counts | None:
        try:
            async with asyncio.timeout(COUNT_WITHIN_S):
                for endpoint in tuple(endpoints):
                    try:
                        return await self._ask(endpoint, path, body)
                    except EngineError:
                        # It answered, and finds the request wrong: so would the others.
                        return None
                    except (OSError, TidegateError):
                        _put_last(endpoints, endpoint)
        except TimeoutError:
            _put_last(endpoints, endpoints[0])
        return None

    async def _ask(self, endpoint: Endpoint, path: str, body: bytes) -> Counts | None:
        if endpoint not in self._counters:
            self._counters[endpoint] = self._counter_at(endpoint)
        return await self._counters[endpoint].count_tokens(path, body)


def _put_last(endpoints: deque[Endpoint], silent: Endpoint) -> None:
    """An engine that does not answer is asked after the others from here on."""
    if endpoints[0] == silent:
        endpoints.rotate(-1)
