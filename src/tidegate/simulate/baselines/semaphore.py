"""A number of places per engine and a queue before them: the plain concurrency limit of most gateways.

``static:N``: N places per engine, one unbounded queue, first come first served (nginx ``max_conns``, LiteLLM
``max_parallel_requests``). ``smg:N``: SMG's slot pool with every request in its class ``interactive``: N slots per
worker (its own default is 64), a queue of 256, 429 above it, 503 after 30 s; slots count requests, not tokens. Its
reserved floors have nothing to hold back where there is one class.
"""

from __future__ import annotations

from tidegate.engines.simulated import EngineEventKind
from tidegate.simulate.calls import RunningCalls
from tidegate.simulate.clock import Clock
from tidegate.simulate.front import ClientSide, WithoutLedger
from tidegate.simulate.replica import SimulatedReplica
from tidegate.simulate.visit import Call

SMG_PLACES, SMG_QUEUE, SMG_TIMEOUT_S = 64, 256, 30.0
SMG_RETRY_AFTER_S = 1.0


class Semaphore(WithoutLedger):
    def __init__(
        self,
        replicas: list[SimulatedReplica],
        clients: ClientSide,
        clock: Clock,
        places: int,
        most_waiting: float = float("inf"),
        timeout_s: float = float("inf"),
    ) -> None:
        self._running = RunningCalls(replicas, clients, self._hear)
        self.refusals = self._running.refusals
        self._replicas = replicas
        self._clock = clock
        self._places = places
        self._most_waiting = most_waiting
        self._timeout_s = timeout_s
        self._waiting: dict[int, Call] = {}
        """In the order in which they came."""

    def open(self, call: Call) -> None:
        if self._send(call):
            return
        if len(self._waiting) >= self._most_waiting:
            self._running.refuse(call, "queue_full")
            return
        self._waiting[call.id] = call
        if self._timeout_s < float("inf"):
            self._clock.schedule(self._clock.now + self._timeout_s, self._expire, call)

    def leave(self, call: Call) -> None:
        if self._waiting.pop(call.id, None) is None:
            self._running.leave(call)
            self._fill()

    def _hear(self, _call: Call, _replica: SimulatedReplica, kind: EngineEventKind) -> None:
        if kind is not EngineEventKind.FIRST_TOKEN:
            self._fill()

    def _fill(self) -> None:
        while self._waiting:
            call = next(iter(self._waiting.values()))
            if not self._send(call):
                return
            del self._waiting[call.id]

    def _send(self, call: Call) -> bool:
        """To the engine with the fewest in flight, if it has a place."""
        if self._waiting and next(iter(self._waiting)) != call.id:
            return False
        of_model = [replica for replica in self._replicas if replica.model == call.visit.demand.model]
        replica = min(of_model, key=self._running.in_flight)
        if self._running.in_flight(replica) >= self._places:
            return False
        self._running.send(call, replica)
        return True

    def _expire(self, call: Call) -> None:
        if self._waiting.pop(call.id, None) is not None:
            self._running.refuse(call, "queue_timeout", SMG_RETRY_AFTER_S)
