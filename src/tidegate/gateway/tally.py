"""Exact prompt lengths, beside the request path and only where they are worth it.

From the upstream's own tokenizer file where there is one (``TokenizerPool``), else from the engines' tokenizers,
which are asked only where a count decides: their processes have other work. What may be under way at a time is
bounded in number and in bytes; above that, and whenever no answer comes, the estimate has to do.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from tidegate.engines.openai import OpenaiServer
from tidegate.engines.prompts import COMPLETIONS
from tidegate.engines.recognition import engine_of
from tidegate.errors import EngineError, TidegateError
from tidegate.gateway.exactness import Counter, Exactness
from tidegate.gateway.settings import Endpoint
from tidegate.gateway.tokenizer_pool import Log, TokenizerPool, no_log
from tidegate.gateway.tokenizing_messages import Count, Counted
from tidegate.policy.reading import ReplicaConfig
from tidegate.policy.token_source import TokenSource

COUNT_WITHIN_S = 2.0
"""A tokenizer counts some million tokens a second; an engine that takes longer is busy with other things."""
TOKENIZE_WITHIN_S = 5.0
"""Of our own: eight prompts of 128 000 tokens, one after the other on one core, take half of it."""
MOST_AT_ONCE = 8
LARGEST_BODY_BYTES = 1024 * 1024
"""An adapter that reads the body holds the loop for about 1 ms a megabyte."""
MOST_PENDING_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Tallied:
    """Who counted what."""

    tokens: tuple[int, ...]
    """Of each prompt in the call."""
    source: TokenSource
    prompt_ids: bytes | None = None
    """JSON list of ids that can stand in the place of the prompt's text."""


Counting = asyncio.Task[Tallied | None]


def counter_at(endpoint: Endpoint) -> Counter:
    """The adapter of an endpoint. Raises ConfigError for a ``ca_file`` that cannot be read."""
    return engine_of(endpoint.kind, endpoint.address())


class Tally:
    """Owned by the gateway; ``serve`` tells it which engines there are."""

    def __init__(
        self,
        counter_at: Callable[[Endpoint], Counter] = counter_at,
        pool: TokenizerPool | None = None,
        log: Log = no_log,
    ) -> None:
        self._counter_at = counter_at
        self._counters: dict[Endpoint, Counter] = {}
        """Those that were asked once: a TLS context takes some 10 ms to make."""
        self._endpoints: dict[str, deque[Endpoint]] = {}
        """Engines that may count, by upstream; the first is asked first."""
        self._tokenizers: dict[str, list[Endpoint]] = {}
        """By upstream that has a tokenizer file: all its replicas."""
        self._pool = TokenizerPool(log=log) if pool is None else pool
        self.exactness = Exactness(self._pool, self._counter_of, log)
        self._tasks: set[Counting] = set()
        self._pending_bytes = 0

    def serve(self, endpoints: Iterable[Endpoint], replicas: Iterable[ReplicaConfig]) -> None:
        """Ask these from here on."""
        upstream_of = {replica.name: replica.upstream for replica in replicas}
        self._endpoints, self._tokenizers = {}, {}
        for endpoint in endpoints:
            upstream = upstream_of.get(endpoint.name)
            if upstream is None:
                continue
            # Of other kinds no tokenizer is known, and with the clients' own keys we have none to ask with.
            if endpoint.kind != OpenaiServer.kind and not endpoint.is_passthrough:
                self._endpoints.setdefault(upstream, deque()).append(endpoint)
            if endpoint.tokenizer is not None:
                self._tokenizers.setdefault(upstream, []).append(endpoint)
        known = {endpoint for endpoints in self._endpoints.values() for endpoint in endpoints}
        self._counters = {endpoint: counter for endpoint, counter in self._counters.items() if endpoint in known}
        files = [each for endpoints in self._tokenizers.values() for each in endpoints]
        # A port of 0: an engine of our own that has not told yet where it listens.
        self.exactness.serve([each for each in files if each.port and not each.is_passthrough])

    def has_tokenizer(self, upstream: str, path: str) -> bool:
        """Counts of this kind of call cost the engines nothing."""
        endpoints = self._tokenizers.get(upstream)
        return endpoints is not None and self.exactness.is_trusted(upstream, path, endpoints)

    def sends_ids(self, upstream: str) -> bool:
        """Some replica of it takes token ids and was found to have the same as we, and none was found not to."""
        endpoints = self._tokenizers.get(upstream)
        if endpoints is None or not self.exactness.is_trusted(upstream, COMPLETIONS, endpoints):
            return False
        return any(each.name in self.exactness.id_exact for each in endpoints)

    def begin(self, upstream: str, path: str, body: bytes, *, wants_ids: bool = False) -> Counting | None:
        """Count the prompts of a call; the task's result is None when nobody could.

        None at once: no engine of this upstream counts, or too much is under way.
        """
        if self.has_tokenizer(upstream, path):
            tokenizer = self._tokenizers[upstream][0].tokenizer or ""
            question = Count(tokenizer, path, body, wants_ids)
            return asyncio.get_running_loop().create_task(self._tokenize(upstream, question))
        return self._begin_asking(upstream, path, body)

    def begin_tokenizing(self, upstream: str, path: str, body: bytes) -> Counting | None:
        """As ``begin``, for a count that is good to have: without bothering an engine."""
        if not self.has_tokenizer(upstream, path):
            return None
        question = Count(self._tokenizers[upstream][0].tokenizer or "", path, body)
        return asyncio.get_running_loop().create_task(self._ask_tokenizer(question))

    def close(self) -> None:
        """End what runs for it."""
        self.exactness.close()
        self._pool.close()

    # ---- our own tokenizers -----------------------------------------------------------------

    async def _tokenize(self, upstream: str, question: Count) -> Tallied | None:
        tallied = await self._ask_tokenizer(question)
        # For ids no engine is asked: it would tokenize the prompt twice.
        asking = None
        if tallied is None and not question.wants_ids:
            asking = self._begin_asking(upstream, question.path, question.body)
        return tallied if asking is None else await asking

    async def _ask_tokenizer(self, question: Count) -> Tallied | None:
        answer = self._pool.ask(question, len(question.body), TOKENIZE_WITHIN_S)
        if answer is None:
            return None
        try:
            async with asyncio.timeout(TOKENIZE_WITHIN_S):
                told = await answer
        except TimeoutError:
            return None
        if not isinstance(told, Counted) or not told.tokens:
            return None
        return Tallied(told.tokens, TokenSource.TOKENIZER, told.prompt_ids)

    # ---- the engines' -----------------------------------------------------------------------

    def _begin_asking(self, upstream: str, path: str, body: bytes) -> Counting | None:
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

    def _forget(self, size_bytes: int, task: Counting) -> None:
        self._tasks.discard(task)
        self._pending_bytes -= size_bytes

    async def _count(self, endpoints: deque[Endpoint], path: str, body: bytes) -> Tallied | None:
        try:
            async with asyncio.timeout(COUNT_WITHIN_S):
                for endpoint in tuple(endpoints):
                    try:
                        counts = await self._counter_of(endpoint).count_tokens(path, body)
                    except EngineError:
                        # It answered, and finds the request wrong: so would the others.
                        return None
                    except (OSError, TidegateError):
                        _put_last(endpoints, endpoint)
                    else:
                        return Tallied(counts, TokenSource.ENGINE) if counts else None
        except TimeoutError:
            _put_last(endpoints, endpoints[0])
        return None

    def _counter_of(self, endpoint: Endpoint) -> Counter:
        if endpoint not in self._counters:
            self._counters[endpoint] = self._counter_at(endpoint)
        return self._counters[endpoint]


def _put_last(endpoints: deque[Endpoint], silent: Endpoint) -> None:
    """An engine that does not answer is asked after the others from here on."""
    if endpoints[0] == silent:
        endpoints.rotate(-1)
