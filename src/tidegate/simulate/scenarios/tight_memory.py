"""Clients that declare 1 024 tokens and get a tenth of it, on one GPU whose KV memory is the bottleneck.

Compute would carry the load and so would the memory, if one knew how long answers turn out to be. What
is declared does not fit: reserving it leaves memory idle while clients wait; reserving nothing lets the
engine throw running answers out. One A10 with Llama-3-8B holds 33 000 tokens, about 45 requests of this
traffic by their real lengths and 20 by what they declare. Prompts are log-normal, 600 at the median, and
so are answers, 90 at the median with a long tail (sigma 0.9: 4 % above 440).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tidegate.engines.presets import preset
from tidegate.simulate.arrivals import Arrival, demands, poisson
from tidegate.simulate.scenario import Scenario, Slo
from tidegate.simulate.scenarios.arguments import positive_number
from tidegate.simulate.streams import stream

DECLARED_TOKENS = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class TightMemory:
    rate_per_s: float
    duration_s: float = 600.0
    patience_s: float = 60.0

    @classmethod
    def parse(cls, argument: str) -> TightMemory:
        return cls(rate_per_s=positive_number("tight-memory", argument, 3.0))

    def build(self, seed: int) -> Scenario:
        rng = stream(seed, "lengths")
        arrivals = [
            Arrival(
                at=time,
                prompt_tokens=min(2000, max(50, round(rng.lognormvariate(6.4, 0.6)))),
                output_tokens=min(DECLARED_TOKENS, max(8, round(rng.lognormvariate(4.5, 0.9)))),
                label="chat",
            )
            for time in poisson(stream(seed, "arrivals"), self.rate_per_s, 0.0, self.duration_s)
        ]
        return Scenario(
            name=f"tight-memory@{self.rate_per_s:g}",
            engines=(preset("A10", "llama-3-8b"),),
            demands=[replace(each, max_tokens=DECLARED_TOKENS) for each in demands(arrivals, seed, self.patience_s)],
            slo=Slo(ttft_s=2.0, tpot_s=0.2),
            tries=2,
            notes={"declared_tokens": DECLARED_TOKENS},
        )
