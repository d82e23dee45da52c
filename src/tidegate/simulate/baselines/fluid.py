"""A fleet that wastes nothing: how much any policy can hope for, first come first served.

Requests flow through the fleet's saturated rate (``capacity.saturated_rate`` of this scenario's own lengths) like a
fluid: a call is taken when the work before it is done within the TTFT objective, and refused at once otherwise. It is a
bound for policies that do not choose by length: one that turns long prompts away can serve more. Gaps between tokens
are those of a full engine. No engine is simulated.
"""

from __future__ import annotations

from tidegate.simulate.arrivals import Arrival
from tidegate.simulate.capacity import saturated_rate
from tidegate.simulate.clock import Clock
from tidegate.simulate.front import ClientSide, WithoutLedger
from tidegate.simulate.scenario import Scenario
from tidegate.simulate.visit import Call

SAMPLE = 2000


class Fluid(WithoutLedger):
    def __init__(self, scenario: Scenario, clients: ClientSide, clock: Clock) -> None:
        self.refusals: dict[str, int] = {}
        self._clients = clients
        self._clock = clock
        self._slo = scenario.slo
        lengths = [
            Arrival(each.at, each.prompt_tokens, each.output_tokens, each.label) for each in scenario.demands[:SAMPLE]
        ]
        self._per_s = sum(saturated_rate(engine, lengths) for engine in scenario.main_engines)
        self._free_at = 0.0
        self._live: set[int] = set()

    def open(self, call: Call) -> None:
        now = self._clock.now
        starts_at = max(now, self._free_at)
        if starts_at - now > self._slo.ttft_s:
            self.refusals["full"] = self.refusals.get("full", 0) + 1
            self._clients.refused(call, 0.0)
            return
        self._free_at = starts_at + 1 / self._per_s
        self._live.add(call.id)
        self._clock.schedule(starts_at, self._start, call)

    def leave(self, call: Call) -> None:
        self._live.discard(call.id)

    def _start(self, call: Call) -> None:
        if call.id in self._live:
            self._clients.first_token(call)
            takes_s = self._slo.tpot_s / 2 * call.visit.demand.output_tokens
            self._clock.schedule(self._clock.now + takes_s, self._end, call)

    def _end(self, call: Call) -> None:
        if call.id in self._live:
            self._live.discard(call.id)
            demand = call.visit.demand
            self._clients.answered(call, min(demand.output_tokens, demand.max_tokens))
