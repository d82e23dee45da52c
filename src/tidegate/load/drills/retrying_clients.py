"""Clients that try again, as a stock SDK does, and say by an ``Idempotency-Key`` that it is the same call."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tidegate.load.ask import Ask
from tidegate.load.client_outcome import ClientOutcome
from tidegate.load.drills.wiretap import CALL_HEADER
from tidegate.load.sample import Sample

MOST_TRIES = 5
"""Three are what the OpenAI SDKs make; five, so that a few dozen calls tell a lost one from bad luck."""
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 8.0
"""Before a further try, doubled each time: the OpenAI SDKs' own (openai-python, ``_calculate_retry_timeout``)."""
TRIED_AGAIN = frozenset(
    {ClientOutcome.BROKEN, ClientOutcome.REFUSED, ClientOutcome.TIMEOUT, ClientOutcome.ERROR, ClientOutcome.SHED}
)


@dataclass(slots=True)
class ClientCall:
    """One thing that a client wants, however often it asks for it."""

    name: str
    tries: list[Sample] = field(default_factory=list)

    @property
    def is_answered(self) -> bool:
        return bool(self.tries) and self.tries[-1].is_answered


class RetryingClients:
    """``send``: one try, to its end."""

    def __init__(self, name: str, send: Callable[[Ask], Awaitable[Sample]]) -> None:
        self._name = name
        self._send = send
        self.calls: list[ClientCall] = []

    async def run(self, asks: Iterable[Ask]) -> None:
        """Begin each call when it is due from now on; returns when all have been answered or given up."""
        began = asyncio.get_running_loop().time()
        async with asyncio.TaskGroup() as group:
            for ask in asks:
                await asyncio.sleep(max(0.0, began + ask.due_s - asyncio.get_running_loop().time()))
                call = ClientCall(f"{self._name}-{ask.index}")
                self.calls.append(call)
                group.create_task(self._make(call, ask))

    async def _make(self, call: ClientCall, ask: Ask) -> None:
        pause_s = FIRST_PAUSE_S
        while True:
            sample = await self._send(named(ask, call.name, len(call.tries)))
            call.tries.append(sample)
            if sample.outcome not in TRIED_AGAIN or len(call.tries) == MOST_TRIES:
                return
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)


def named(ask: Ask, call: str, number: int) -> Ask:
    """Try ``number`` of it: an id of its own for the gateway's records, and the call's key and name."""
    headers = (("x-request-id", f"{call}.{number}"), ("idempotency-key", call), (CALL_HEADER, call))
    return replace(ask, headers=headers)


def call_of(request_id: str) -> str:
    return request_id.rpartition(".")[0]


def charged_calls(rows: Iterable[Mapping[str, Any]], calls: Iterable[ClientCall]) -> Counter[str]:
    """How often each call was computed to its end and charged, by the gateway's own records."""
    names = {call.name for call in calls}
    charged = [row for row in rows if row.get("outcome") == "ok" and not row.get("reuse")]
    return Counter(name for row in charged if (name := call_of(str(row["request_id"]))) in names)


def reused_tries(rows: Iterable[Mapping[str, Any]], calls: Iterable[ClientCall]) -> int:
    """Tries that got the answer of an earlier one of the same call."""
    names = {call.name for call in calls}
    return sum(bool(row.get("reuse")) and call_of(str(row["request_id"])) in names for row in rows)
