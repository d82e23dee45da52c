"""A model that becomes ten times as slow, and a lighter one that could answer in its place (SPEC S0-50, S0-135).

Short questions of a bank's customers, 40 % of what one engine with a 7B model carries. From 20 s on every step of that
engine takes ten times as long, so that it carries a quarter of what comes; clients leave after 4 s without a token, the
source's timeout. Its claim is that with the lighter model 99 % of the requests are done in 1.5 s.
"""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.engines.presets import preset
from tidegate.simulate.arrivals import Kind, Mix, demands, poisson
from tidegate.simulate.capacity import saturated_rate
from tidegate.simulate.fault import Fault, FaultKind
from tidegate.simulate.scenario import Burst, Scenario, Slo
from tidegate.simulate.scenarios.arguments import nothing
from tidegate.simulate.scenarios.lighter import LIGHT, lighter
from tidegate.simulate.streams import stream
from tidegate.simulate.visit import MODEL

QUESTION = Kind("question", 1.0, prompt=(150, 500), output=(12, 48))
CAPACITY_SAMPLE = 4000


@dataclass(frozen=True, slots=True)
class Fallback:
    """``slow`` × the step time from ``slow_at_s`` on, to the end."""

    load: float = 0.4
    slow: float = 10.0
    slow_at_s: float = 20.0
    duration_s: float = 120.0
    patience_s: float = 4.0

    @classmethod
    def parse(cls, argument: str) -> Fallback:
        nothing("fallback", argument)
        return cls()

    def build(self, seed: int) -> Scenario:
        engine = preset("A100", "qwen2-7b")
        sample = Mix((QUESTION,), stream(0, "capacity")).at([0.0] * CAPACITY_SAMPLE)
        capacity_per_s = saturated_rate(engine, sample)
        rate_per_s = self.load * capacity_per_s
        times = poisson(stream(seed, "arrivals"), rate_per_s, 0.0, self.duration_s)
        return Scenario(
            name="fallback",
            engines=(engine, lighter(engine)),
            models=(MODEL, LIGHT),
            light_models={MODEL: LIGHT},
            demands=demands(Mix((QUESTION,), stream(seed, "lengths")).at(times), seed, self.patience_s),
            slo=Slo(ttft_s=1.0, tpot_s=0.1),
            tries=2,
            burst=Burst(self.slow_at_s, self.duration_s),
            faults=(Fault(at=self.slow_at_s, replica=0, kind=FaultKind.SLOW, factor=self.slow),),
            done_within_s=1.5,
            notes={"capacity_per_s": round(capacity_per_s, 2), "rate_per_s": round(rate_per_s, 2)},
        )
