"""llm-d's flow control: one queue in order of deadlines behind a gate on how full the engines say they are.

    saturation = mean over engines of max(waiting ÷ 5, KV used ÷ 0.8)          the utilization detector's defaults
    dispatch one request a millisecond while saturation < 1, to the engine with the fewest waiting, then least KV

Engines are scraped every 50 ms, so a burst passes the gate between two scrapes (llm-d #2066). Requests are ordered by
arrival + the TTFT objective (``slo-deadline``), held for 60 s at most, and refused with 429 then. ``llm-d:shed`` marks
every request sheddable, as its probabilistic admitter needs: at arrival it refuses with p = min(300 · saturation⁵, 1).
"""

from __future__ import annotations

from heapq import heappop, heappush

from tidegate.policy.balance.cost import FIRST, spread
from tidegate.policy.reading import Reading
from tidegate.simulate.calls import RunningCalls
from tidegate.simulate.clock import Clock
from tidegate.simulate.front import ClientSide, WithoutLedger
from tidegate.simulate.replica import SimulatedReplica
from tidegate.simulate.visit import Call

MOST_WAITING, MOST_KV_SHARE = 5, 0.8
SCRAPE_S, DISPATCH_S, TTL_S = 0.05, 0.001, 60.0
SHED_FACTOR, SHED_POWER = 300.0, 5


class SaturationGate(WithoutLedger):
    def __init__(
        self, replicas: list[SimulatedReplica], clients: ClientSide, clock: Clock, ttft_s: float, *, sheds: bool
    ) -> None:
        self._running = RunningCalls(replicas, clients)
        self.refusals = self._running.refusals
        self._replicas = replicas
        self._clock = clock
        self._ttft_s = ttft_s
        self._sheds = sheds
        self._readings: dict[str, Reading] = {}
        self._scraped_at = float("-inf")
        self._waiting: dict[int, Call] = {}
        self._order: list[tuple[float, int]] = []
        """(deadline, id) of those that wait, and of some that do not any more."""
        self._is_set = False

    def open(self, call: Call) -> None:
        if self._sheds:
            odds = min(1.0, SHED_FACTOR * self._saturation(call.visit.demand.model) ** SHED_POWER)
            if spread(call.draw, FIRST, 10_000) < odds * 10_000:
                self._running.refuse(call, "shed")
                return
        self._waiting[call.id] = call
        heappush(self._order, (call.at + self._ttft_s, call.id))
        self._clock.schedule(self._clock.now + TTL_S, self._expire, call)
        self._set(0.0)

    def leave(self, call: Call) -> None:
        if self._waiting.pop(call.id, None) is None:
            self._running.leave(call)

    def _set(self, after_s: float) -> None:
        if not self._is_set:
            self._is_set = True
            self._clock.schedule(self._clock.now + after_s, self._dispatch)

    def _dispatch(self) -> None:
        """One cycle: the first in order goes if the engines are not full; else all wait."""
        self._is_set = False
        while self._order and self._order[0][1] not in self._waiting:
            heappop(self._order)
        if not self._order:
            return
        call = self._waiting[self._order[0][1]]
        model = call.visit.demand.model
        if self._saturation(model) >= 1.0:
            self._set(max(DISPATCH_S, self._scraped_at + SCRAPE_S - self._clock.now))
            return
        heappop(self._order)
        del self._waiting[call.id]
        self._running.send(call, min(self._of(model), key=self._load))
        self._set(DISPATCH_S)

    def _of(self, model: str) -> list[SimulatedReplica]:
        return [replica for replica in self._replicas if replica.model == model]

    def _load(self, replica: SimulatedReplica) -> tuple[float, float]:
        reading = self._readings[replica.name]
        return reading.waiting or 0, (reading.kv_used_tokens or 0) / replica.engine.config.kv_tokens

    def _saturation(self, model: str) -> float:
        now = self._clock.now
        if now - self._scraped_at >= SCRAPE_S:
            self._scraped_at = now
            self._readings = {replica.name: replica.reading() for replica in self._replicas}
        loads = [self._load(replica) for replica in self._of(model)]
        return sum(max(waiting / MOST_WAITING, kv / MOST_KV_SHARE) for waiting, kv in loads) / len(loads)

    def _expire(self, call: Call) -> None:
        if self._waiting.pop(call.id, None) is not None:
            self._running.refuse(call, "queue_timeout")
