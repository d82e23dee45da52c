"""No gateway: round robin over a model's replicas, each first come first served without bound.

What a load balancer before plain vLLM gives. A client that leaves is noticed by the engine, unless
the engines are zombies (``native:zombie``). With a cap, each engine refuses what would make more prompt
tokens wait than that: vLLM's own ``--max-num-queued-tokens``, whose 503 has no Retry-After. One prompt
is always taken, however long.
"""

from __future__ import annotations

from collections import deque

from tidegate.simulate.calls import RunningCalls
from tidegate.simulate.front import ClientSide, WithoutLedger
from tidegate.simulate.replica import SimulatedReplica
from tidegate.simulate.visit import Call


class Native(WithoutLedger):
    def __init__(
        self, replicas: list[SimulatedReplica], clients: ClientSide, most_queued_tokens: int | None = None
    ) -> None:
        self._running = RunningCalls(replicas, clients)
        self.refusals = self._running.refusals
        self._most_queued_tokens = most_queued_tokens
        self._replicas: dict[str, deque[SimulatedReplica]] = {}
        """By model; the next in turn stands first."""
        for replica in replicas:
            self._replicas.setdefault(replica.model, deque()).append(replica)

    def open(self, call: Call) -> None:
        demand = call.visit.demand
        in_turn = self._replicas[demand.model]
        replica = in_turn[0]
        in_turn.rotate(-1)
        queued, most = self._running.queued_tokens(replica), self._most_queued_tokens
        if most is not None and queued and queued + demand.prompt_tokens > most:
            self._running.refuse(call, "queue_full")
        else:
            self._running.send(call, replica)

    def leave(self, call: Call) -> None:
        self._running.leave(call)
