"""Netflix concurrency-limits, Gradient2, on raw time to first token; above the limit a call is refused.

Once a window (at least 1 s and 10 samples), per engine, with ``short`` the window's mean and ``long`` its average over
600 windows:

    long ← 0.95 · long  if long ÷ short > 2              no change while fewer than half the limit are in flight
    g = clamp(1.5 · long ÷ short, 0.5, 1)                L ← 0.8 · L + 0.2 · (g · L + 4), within 20 … 200

The constants are the library's defaults. A time to first token varies with the prompt, which it does not know.
"""

from __future__ import annotations

from tidegate.engines.simulated import EngineEventKind
from tidegate.simulate.calls import RunningCalls
from tidegate.simulate.clock import Clock
from tidegate.simulate.front import ClientSide, WithoutLedger
from tidegate.simulate.replica import SimulatedReplica
from tidegate.simulate.visit import Call

INITIAL, LEAST, MOST = 20.0, 20.0, 200.0
TOLERANCE, SMOOTHING, QUEUE = 1.5, 0.2, 4.0
WINDOW_S, WINDOW_SAMPLES, LONG_WINDOWS = 1.0, 10, 600


class Gradient:
    """The limit of one engine."""

    def __init__(self) -> None:
        self.value = INITIAL
        self._samples: list[float] = []
        self._began_at = 0.0
        self._long_s = 0.0
        self._windows = 0

    def add(self, seconds: float, in_flight: int, now: float) -> None:
        self._samples.append(seconds)
        if now - self._began_at >= WINDOW_S and len(self._samples) >= WINDOW_SAMPLES:
            self._update(sum(self._samples) / len(self._samples), in_flight)
            self._samples, self._began_at = [], now

    def _update(self, short_s: float, in_flight: int) -> None:
        self._windows = min(LONG_WINDOWS, self._windows + 1)
        # An average of all windows until there are as many as it is made for.
        self._long_s += (short_s - self._long_s) * max(1 / self._windows, 2 / (LONG_WINDOWS + 1))
        if self._long_s > 2 * short_s:
            self._long_s *= 0.95
        if in_flight < self.value / 2:
            return
        gradient = min(1.0, max(0.5, TOLERANCE * self._long_s / short_s))
        self.value += SMOOTHING * (gradient * self.value + QUEUE - self.value)
        self.value = min(MOST, max(LEAST, self.value))


class Gradient2(WithoutLedger):
    def __init__(self, replicas: list[SimulatedReplica], clients: ClientSide, clock: Clock) -> None:
        self._running = RunningCalls(replicas, clients, self._hear)
        self.refusals = self._running.refusals
        self.limits = {replica.name: Gradient() for replica in replicas}
        self._replicas = replicas
        self._clock = clock

    def open(self, call: Call) -> None:
        of_model = [replica for replica in self._replicas if replica.model == call.visit.demand.model]
        replica = min(of_model, key=self._running.in_flight)
        if self._running.in_flight(replica) >= self.limits[replica.name].value:
            self._running.refuse(call, "limit")
        else:
            self._running.send(call, replica)

    def leave(self, call: Call) -> None:
        self._running.leave(call)

    def _hear(self, call: Call, replica: SimulatedReplica, kind: EngineEventKind) -> None:
        if kind is EngineEventKind.FIRST_TOKEN:
            now = self._clock.now
            self.limits[replica.name].add(now - call.at, self._running.in_flight(replica), now)
