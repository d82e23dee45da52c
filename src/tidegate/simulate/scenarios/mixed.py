"""Two kinds of clients on one engine at twice the trace: half want a first token in 1.5 s, half bear 20 s.

The Azure 2023 chat trace at 2 x (or K x) its rate. A coin per request makes it ``interactive`` or ``relaxed``; the
client says which in its class header. A prototype's frontier: 96.5 % of the interactive and 45 % of the relaxed in
order of deadlines, 95.5 % and 65 % where relaxed ones keep 30 % of the rate.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tidegate.simulate.scenario import Scenario
from tidegate.simulate.scenarios.arguments import nothing, positive_number
from tidegate.simulate.scenarios.replay import Replay, azure_conv
from tidegate.simulate.streams import stream

OBJECTIVES_S = {"interactive": 1.5, "relaxed": 20.0}
"""TTFT by the class that the client names."""


@dataclass(frozen=True, slots=True)
class Mixed:
    name: str
    replay: Replay

    @classmethod
    def parse(cls, argument: str) -> Mixed:
        speed = positive_number("mixed", argument, 2.0)
        return cls(f"mixed@{speed:g}", azure_conv(f"{speed:g}"))

    @classmethod
    def twice(cls, argument: str) -> Mixed:
        nothing("mixed-2x", argument)
        return replace(cls.parse("2"), name="mixed-2x")

    def build(self, seed: int) -> Scenario:
        scenario = self.replay.build(seed)
        rng = stream(seed, "classes")
        names = [rng.choice(tuple(OBJECTIVES_S)) for _ in scenario.demands]
        drawn = [
            replace(demand, label=name, class_hint=name, ttft_slo_s=OBJECTIVES_S[name])
            for demand, name in zip(scenario.demands, names, strict=True)
        ]
        return replace(scenario, name=self.name, demands=drawn)
