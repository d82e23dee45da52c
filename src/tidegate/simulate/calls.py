"""Calls that are in engines: each is sent once, and its end is told once."""

from __future__ import annotations

from collections.abc import Callable

from tidegate.engines.simulated import EngineEvent, EngineEventKind
from tidegate.simulate.front import ClientSide
from tidegate.simulate.replica import SimulatedReplica
from tidegate.simulate.visit import Call, Ending

Hears = Callable[[Call, SimulatedReplica, EngineEventKind], None]
"""Told of a first token and of an end, after the client was."""


class RunningCalls:
    """What every front without a ledger needs to know of its engines."""

    def __init__(self, replicas: list[SimulatedReplica], clients: ClientSide, hears: Hears | None = None) -> None:
        self.refusals: dict[str, int] = {}
        """Refused calls by reason."""
        self._clients = clients
        self._hears = hears
        self._calls: dict[int, tuple[Call, SimulatedReplica]] = {}
        self._started: set[int] = set()
        self._in_flight = dict.fromkeys((replica.name for replica in replicas), 0)
        self._queued_tokens = dict.fromkeys(self._in_flight, 0)
        for replica in replicas:
            replica.listen(self._hear)

    def in_flight(self, replica: SimulatedReplica) -> int:
        return self._in_flight[replica.name]

    def queued_tokens(self, replica: SimulatedReplica) -> int:
        """Prompt tokens of its calls that have no first token."""
        return self._queued_tokens[replica.name]

    def send(self, call: Call, replica: SimulatedReplica) -> None:
        demand = call.visit.demand
        self._calls[call.id] = (call, replica)
        self._in_flight[replica.name] += 1
        self._queued_tokens[replica.name] += demand.prompt_tokens
        if not replica.submit(call.id, demand):
            self._forget(call, replica)
            self._clients.failed(call, Ending.ENGINE)

    def refuse(self, call: Call, reason: str, retry_after_s: float | None = 0.0) -> None:
        """0.0: without a Retry-After; the client comes back when it likes. None: coming back is useless."""
        self.refusals[reason] = self.refusals.get(reason, 0) + 1
        self._clients.refused(call, retry_after_s)

    def leave(self, call: Call) -> SimulatedReplica | None:
        """Its client has gone. The replica that it ran on, if it was sent."""
        found = self._calls.get(call.id)
        if found is None:
            return None
        self._forget(*found)
        found[1].abort(call.id)
        return found[1]

    def _forget(self, call: Call, replica: SimulatedReplica) -> None:
        del self._calls[call.id]
        self._in_flight[replica.name] -= 1
        if call.id in self._started:
            self._started.discard(call.id)
        else:
            self._queued_tokens[replica.name] -= call.visit.demand.prompt_tokens

    def _hear(self, event: EngineEvent) -> None:
        if event.id not in self._calls:
            return
        call, replica = self._calls[event.id]
        if event.kind is EngineEventKind.FIRST_TOKEN:
            self._started.add(call.id)
            self._queued_tokens[replica.name] -= call.visit.demand.prompt_tokens
            self._clients.first_token(call)
        else:
            self._forget(call, replica)
            self._end(call, event)
        if self._hears is not None:
            self._hears(call, replica, event.kind)

    def _end(self, call: Call, event: EngineEvent) -> None:
        if event.kind is EngineEventKind.FINISHED:
            self._clients.answered(call, event.tokens)
        elif event.kind is EngineEventKind.TOO_LONG:
            self.refuse(call, "too_long", None)
        else:
            self._clients.failed(call, Ending.ENGINE)
