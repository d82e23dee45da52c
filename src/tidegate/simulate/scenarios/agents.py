"""Users of an agent, each of whom waits for four calls one after the other, and a first step that becomes slow
(SPEC S0-53, S0-133, S0-136).

Retrieve, plan, use a tool, answer: each step has a model and an H100 of its own, and begins when the one before has
been answered. From 30 to 90 s the retrieval's engine takes ``slow`` times as long for everything. The user wants the
whole in 2 s and is gone after ``patience_s``; clients say so with every call (a deadline for the chain, not for the
call). A lighter model stands by for each of the four, on one engine each, as no one knows which step it will be.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tidegate.engines.presets import preset
from tidegate.simulate.arrivals import Arrival, Kind, Mix, client_bound, poisson
from tidegate.simulate.capacity import saturated_rate
from tidegate.simulate.fault import Fault, FaultKind
from tidegate.simulate.scenario import Burst, Scenario, Slo
from tidegate.simulate.scenarios.arguments import positive_number
from tidegate.simulate.scenarios.lighter import lighter
from tidegate.simulate.streams import stream
from tidegate.simulate.visit import Demand

STEPS = (
    Kind("retrieve", 1.0, prompt=(300, 900), output=(8, 24)),
    Kind("plan", 1.0, prompt=(400, 800), output=(10, 30)),
    Kind("tool", 1.0, prompt=(200, 500), output=(8, 16)),
    Kind("answer", 1.0, prompt=(600, 1200), output=(20, 50)),
)
CAPACITY_SAMPLE = 3000


@dataclass(frozen=True, slots=True)
class AgentChain:
    slow: float
    """Factor on the step time of the retrieval's engine between ``slow_at_s`` and ``well_at_s``."""
    chains_per_s: float = 8.0
    slow_at_s: float = 30.0
    well_at_s: float = 90.0
    duration_s: float = 120.0
    patience_s: float = 6.0

    @classmethod
    def parse(cls, argument: str) -> AgentChain:
        return cls(positive_number("agent-chain", argument, 5.0))

    def build(self, seed: int) -> Scenario:
        engine = preset("H100", "qwen2-7b")
        names = [step.label for step in STEPS]
        light = {name: f"{name}-light" for name in names}
        return Scenario(
            name=f"agent-chain@{self.slow:g}",
            engines=(engine,) * len(STEPS) + (lighter(engine),) * len(STEPS),
            models=(*names, *light.values()),
            light_models=light,
            demands=self._chains(seed),
            slo=Slo(ttft_s=0.5, tpot_s=0.1),
            tries=2,
            burst=Burst(self.slow_at_s, self.well_at_s),
            faults=(
                Fault(at=self.slow_at_s, replica=0, kind=FaultKind.SLOW, factor=self.slow),
                Fault(at=self.well_at_s, replica=0, kind=FaultKind.SLOW, factor=1.0),
            ),
            done_within_s=2.0,
            notes={
                "chains_per_s": self.chains_per_s,
                **{f"{step.label}_capacity_per_s": round(saturated_rate(engine, _sample(step)), 1) for step in STEPS},
            },
        )

    def _chains(self, seed: int) -> list[Demand]:
        times = [*poisson(stream(seed, "arrivals"), self.chains_per_s, 0.0, self.duration_s)]
        rng, count = stream(seed, "clients"), len(times)
        links: list[Demand] = []
        for place, step in reversed([*enumerate(STEPS)]):
            rows = Mix((step,), stream(seed, f"{step.label}/lengths")).at(times)
            links = [
                Demand(
                    index=place * count + index,
                    at=row.at if place == 0 else 0.0,
                    prompt_tokens=row.prompt_tokens,
                    output_tokens=row.output_tokens,
                    max_tokens=client_bound(row.output_tokens),
                    label=step.label,
                    patience_s=self.patience_s,
                    retry_delay_s=rng.uniform(0.5, 1.5),
                    draw=rng.getrandbits(64),
                    model=step.label,
                    worthless_after_s=self.patience_s,
                    chain=index,
                    then=links[index] if links else None,
                )
                for index, row in enumerate(rows)
            ]
        return links


def _sample(step: Kind) -> Iterator[Arrival]:
    return Mix((step,), stream(0, "capacity")).at([0.0] * CAPACITY_SAMPLE)
