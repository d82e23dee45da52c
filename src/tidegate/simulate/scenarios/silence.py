"""Three seconds of silence, then 200 requests in the fourth second, on one engine (SPEC S0-36).

The source has a front that gathers whatever comes in 10 ms, forces all into one batch and loses some; in vLLM, and
here, an engine takes what its KV memory and its places hold and the rest waits in it. What is left of the claim that
the P99 is 17 times the mean is ``calm_ratio``: P99 of the whole answer by the mean of the same requests each alone on
the engine. ``@light``: with an engine of a lighter model.
"""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.engines.presets import preset
from tidegate.simulate.arrivals import Mix, demands
from tidegate.simulate.capacity import calm_e2e_s
from tidegate.simulate.scenario import Scenario, Slo
from tidegate.simulate.scenarios.arguments import one_of
from tidegate.simulate.scenarios.campaign import MIX
from tidegate.simulate.scenarios.lighter import LIGHT, lighter
from tidegate.simulate.streams import stream
from tidegate.simulate.visit import MODEL


@dataclass(frozen=True, slots=True)
class SilenceThenBurst:
    variant: str = ""
    requests: int = 200
    silence_s: float = 3.0
    arrive_in_s: float = 1.0
    patience_s: float = 7.0

    @classmethod
    def parse(cls, argument: str) -> SilenceThenBurst:
        return cls(one_of("silence-then-200", argument, ("", "light")))

    def build(self, seed: int) -> Scenario:
        rng = stream(seed, "arrivals")
        times = sorted(self.silence_s + rng.uniform(0.0, self.arrive_in_s) for _ in range(self.requests))
        engine, light = preset("A100", "llama-3-8b"), int(self.variant == "light")
        drawn = demands(Mix(MIX, stream(seed, "lengths")).at(times), seed, self.patience_s)
        return Scenario(
            name=f"silence-then-200@{self.variant}" if self.variant else "silence-then-200",
            engines=(engine,) + (lighter(engine),) * light,
            models=(MODEL,) + (LIGHT,) * light,
            light_models={MODEL: LIGHT} if light else {},
            demands=drawn,
            slo=Slo(ttft_s=2.0, tpot_s=0.1),
            tries=2,
            calm_e2e_s=calm_e2e_s(engine, drawn),
        )
