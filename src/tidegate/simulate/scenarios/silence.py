"""Three seconds of silence, then 200 requests in the fourth second, on one engine."""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.engines.presets import preset
from tidegate.simulate.arrivals import Mix, demands
from tidegate.simulate.scenario import Scenario, Slo
from tidegate.simulate.scenarios.arguments import nothing
from tidegate.simulate.scenarios.campaign import MIX
from tidegate.simulate.streams import stream


@dataclass(frozen=True, slots=True)
class SilenceThenBurst:
    requests: int = 200
    silence_s: float = 3.0
    arrive_in_s: float = 1.0
    patience_s: float = 7.0

    @classmethod
    def parse(cls, argument: str) -> SilenceThenBurst:
        nothing("silence-then-200", argument)
        return cls()

    def build(self, seed: int) -> Scenario:
        rng = stream(seed, "arrivals")
        times = sorted(self.silence_s + rng.uniform(0.0, self.arrive_in_s) for _ in range(self.requests))
        return Scenario(
            name="silence-then-200",
            engines=(preset("A100", "llama-3-8b"),),
            demands=demands(Mix(MIX, stream(seed, "lengths")).at(times), seed, self.patience_s),
            slo=Slo(ttft_s=2.0, tpot_s=0.1),
            tries=2,
        )
