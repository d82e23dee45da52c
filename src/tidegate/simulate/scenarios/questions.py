"""A thousand short questions a second for ten seconds, on engines that carry a quarter of that (SPEC S0-35, S0-134).

Customer service: 200 tokens of prompt on average and short answers, and among them some pasted contracts of about 2000
tokens (2 %, a sixth of all work), which are what the ordinary questions must be kept from. As many A10 with
Llama-3-8B as carry 250 questions a second (their KV memory is what is scarce: a batch of 256 does not fit); in the
burst four times that, before and after it a tenth. Clients declare 256 tokens. Whoever has waited 30 s for the first
one in vain is gone, whoever was refused calls once more. ``@without``: the same questions without the contracts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain

from tidegate.engines.presets import preset
from tidegate.simulate.arrivals import Kind, Mix, demands, poisson
from tidegate.simulate.capacity import saturated_rate
from tidegate.simulate.scenario import Burst, Scenario, Slo
from tidegate.simulate.scenarios.arguments import one_of
from tidegate.simulate.streams import stream

QUESTION = Kind("question", 0.98, prompt=(50, 350), output=(40, 160))
CONTRACT = Kind("contract", 0.02, prompt=(2000, 2600), output=(150, 250))
CAPACITY_SAMPLE = 3000
CARRIED_PER_S = 250.0
DECLARED_TOKENS = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class ThousandPerSecond:
    variant: str
    burst_factor: float = 4.0
    base_share: float = 0.1
    burst_at_s: float = 20.0
    burst_s: float = 10.0
    duration_s: float = 100.0
    patience_s: float = 30.0

    @classmethod
    def parse(cls, argument: str) -> ThousandPerSecond:
        return cls(variant=one_of("burst-1000", argument, ("", "without")))

    def build(self, seed: int) -> Scenario:
        engine = preset("A10", "llama-3-8b")
        sample = Mix((QUESTION,), stream(0, "capacity")).at([0.0] * CAPACITY_SAMPLE)
        engine_per_s = saturated_rate(engine, sample)
        engines = round(CARRIED_PER_S / engine_per_s)
        capacity_per_s = engines * engine_per_s
        burst, rng = Burst(self.burst_at_s, self.burst_at_s + self.burst_s), stream(seed, "arrivals")
        base_per_s = self.base_share * capacity_per_s
        times = chain(
            poisson(rng, base_per_s, 0.0, burst.start_s),
            poisson(rng, self.burst_factor * capacity_per_s, burst.start_s, burst.end_s),
            poisson(rng, base_per_s, burst.end_s, self.duration_s),
        )
        rows = Mix((QUESTION, CONTRACT), stream(seed, "lengths")).at(times)
        kept = [row for row in rows if row.label == QUESTION.label or not self.variant]
        return Scenario(
            name=f"burst-1000@{self.variant}" if self.variant else "burst-1000",
            engines=(engine,) * engines,
            demands=[replace(each, max_tokens=DECLARED_TOKENS) for each in demands(kept, seed, self.patience_s)],
            slo=Slo(ttft_s=2.0, tpot_s=0.2),
            tries=2,
            returns_after_timeout=False,
            burst=burst,
            notes={
                "capacity_per_s": round(capacity_per_s, 1),
                "burst_per_s": round(self.burst_factor * capacity_per_s, 1),
            },
        )
