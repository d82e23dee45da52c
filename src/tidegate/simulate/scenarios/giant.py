"""One 12k-token prompt among 99 short ones, on one engine."""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.engines.presets import preset
from tidegate.simulate.arrivals import Arrival, Kind, Mix, demands
from tidegate.simulate.scenario import Scenario, Slo
from tidegate.simulate.scenarios.arguments import one_of
from tidegate.simulate.streams import stream

SHORT = Kind("short", 1.0, prompt=(150, 450), output=(75, 225))


@dataclass(frozen=True, slots=True)
class GiantAmongShorts:
    variant: str
    """``group``: all in one second, the giant at 0.5 s; ``spread``: over 10 s, at 3 s; ``without``: the
    group alone, to compare with."""
    patience_s: float = 60.0

    @classmethod
    def parse(cls, argument: str) -> GiantAmongShorts:
        return cls(one_of("giant-and-99", argument, ("group", "spread", "without")))

    def build(self, seed: int) -> Scenario:
        length_s, giant_at = (10.0, 3.0) if self.variant == "spread" else (1.0, 0.5)
        rng = stream(seed, "arrivals")
        times = sorted(rng.uniform(0.0, length_s) for _ in range(99))
        arrivals = list(Mix((SHORT,), stream(seed, "lengths")).at(times))
        if self.variant != "without":
            arrivals.append(Arrival(giant_at, 12_000, 200, "giant"))
        return Scenario(
            name=f"giant-and-99@{self.variant}",
            engines=(preset("A100", "llama-3-8b", chunk_tokens=512),),
            demands=demands(arrivals, seed, self.patience_s),
            slo=Slo(ttft_s=2.0, tpot_s=0.1),
            tries=2,
        )
