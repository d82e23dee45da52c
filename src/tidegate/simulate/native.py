"""No gateway: round robin over a model's replicas, each first come first served without bound.

What a load balancer before plain vLLM gives. A client that leaves is noticed by the engine, unless
the engines are zombies (``native:zombie``).
"""

from __future__ import annotations

from collections import deque
from typing import Any

from tidegate.engines.simulated import EngineEvent, EngineEventKind
from tidegate.simulate.front import ClientSide
from tidegate.simulate.replica import SimulatedReplica
from tidegate.simulate.visit import Call, Ending


class Native:
    def __init__(self, replicas: list[SimulatedReplica], clients: ClientSide) -> None:
        self.refusals: dict[str, int] = {}
        self._clients = clients
        self._replicas: dict[str, deque[SimulatedReplica]] = {}
        """By model; the next in turn stands first."""
        self._calls: dict[int, tuple[Call, SimulatedReplica]] = {}
        for replica in replicas:
            replica.listen(self._hear)
            self._replicas.setdefault(replica.model, deque()).append(replica)

    def reserved_tokens(self, _replica: str) -> None:
        return None

    def groups(self) -> dict[str, dict[str, Any]]:
        return {}

    def open(self, call: Call) -> None:
        demand = call.visit.demand
        in_turn = self._replicas[demand.model]
        replica = in_turn[0]
        in_turn.rotate(-1)
        self._calls[call.id] = (call, replica)
        output_tokens = min(demand.output_tokens, demand.max_tokens)
        if not replica.submit(call.id, demand.prompt_tokens, output_tokens, demand.max_tokens):
            del self._calls[call.id]
            self._clients.failed(call, Ending.ENGINE)

    def leave(self, call: Call) -> None:
        _, replica = self._calls.pop(call.id)
        replica.abort(call.id)

    def _hear(self, event: EngineEvent) -> None:
        if event.id not in self._calls:
            return
        call, _ = self._calls[event.id]
        if event.kind is EngineEventKind.FIRST_TOKEN:
            self._clients.first_token(call)
            return
        del self._calls[event.id]
        if event.kind is EngineEventKind.FINISHED:
            self._clients.answered(call, event.tokens)
        elif event.kind is EngineEventKind.TOO_LONG:
            self.refusals["too_long"] = self.refusals.get("too_long", 0) + 1
            self._clients.refused(call, None)
        else:
            self._clients.failed(call, Ending.ENGINE)
