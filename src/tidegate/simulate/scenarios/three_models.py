"""Three models on one card's memory, and a surge of image requests (SPEC S0-69 … S0-74).

An agent's steps: a small text model routes and classifies, an image model answers about pictures, a
code model writes long answers. Their engines run beside each other on one H100 of 80 GB: 36 GB are
left for KV after the weights (35 GB) and 10 % for activations. For two minutes ``surge`` x as many
image requests come as usual; in the second of them code, whose memory is lent by then, comes back
with about what its floor is made for.

**What is physical here.** One budget for several engines takes engines whose KV memory is mapped when
it is used, so that each may be sized for the whole budget while a ledger keeps their sum within it
(an elastic pool on CUDA's virtual memory, or one unified memory). A plain vLLM pins its pool at start:
for it, this is a quota without effect above its own pool, and ``tidegate:isolated`` and ``native``,
where every engine owns its floor and no more, are what is true. Compute is divided in fixed parts
(as MPS can), whatever the memory does, so lending memory lends no compute.

Step times: the 7B models are the H100 preset's, slowed by their part of the card; the 1.5B model's are
scaled by parameters (0.2 of the 7B's, with 1.5 ms of host time a step). **No such mix was measured.**
KV bytes: 2 x layers x KV heads x 128 x 2 of Qwen2-7B (57 344) and Qwen2-1.5B (28 672); images three
times the 7B's, as S0-75 says.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain

from tidegate.engines.presets import preset
from tidegate.engines.step_model import SimulatedConfig, StepModel
from tidegate.simulate.arrivals import Arrival, Kind, Mix, demands, poisson
from tidegate.simulate.scenario import Burst, Part, Scenario, SharedPool, Slo
from tidegate.simulate.scenarios.arguments import positive_number
from tidegate.simulate.streams import stream

BUDGET_BYTES = 36_000_000_000
PARTS = (
    Part(model="images", bytes_per_token=3 * 57_344, floor_share=0.45),
    Part(model="text", bytes_per_token=28_672, floor_share=0.10),
    Part(model="code", bytes_per_token=57_344, floor_share=0.45),
)
"""Each floor holds twice its model's usual load, as somebody who isolates would plan; the rest is divided evenly."""
COMPUTE_SHARES = {"images": 0.5, "text": 0.15, "code": 0.35}
KINDS = {
    "images": Kind("images", 1.0, prompt=(1100, 2200), output=(250, 500)),
    "text": Kind("text", 1.0, prompt=(200, 600), output=(8, 32)),
    "code": Kind("code", 1.0, prompt=(1000, 4000), output=(800, 2000)),
}
RATES_PER_S = {"images": 2.0, "text": 10.0, "code": 0.6}


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreeModels:
    """``surge`` × the usual rate of images from ``surge_at_s`` on, for ``surge_s``, and in its second half
    ``code_surge`` × the usual rate of code."""

    surge: float
    code_surge: float = 2.0
    surge_at_s: float = 60.0
    surge_s: float = 120.0
    duration_s: float = 240.0
    patience_s: float = 60.0

    @classmethod
    def parse(cls, argument: str) -> ThreeModels:
        return cls(surge=positive_number("three-models", argument, 2.5))

    def build(self, seed: int) -> Scenario:
        burst = Burst(self.surge_at_s, self.surge_at_s + self.surge_s)
        arrivals = chain.from_iterable(self._arrivals(part.model, seed, burst) for part in PARTS)
        return Scenario(
            name=f"three-models@{self.surge:g}",
            engines=tuple(_engine(part) for part in PARTS),
            demands=demands(arrivals, seed, self.patience_s),
            slo=Slo(ttft_s=2.0, tpot_s=0.2),
            tries=2,
            burst=burst,
            pool=SharedPool(budget_bytes=BUDGET_BYTES, parts=PARTS),
            notes={f"{model}_per_s": rate for model, rate in RATES_PER_S.items()},
        )

    def _arrivals(self, model: str, seed: int, burst: Burst) -> list[Arrival]:
        rng, rate = stream(seed, f"{model}/arrivals"), RATES_PER_S[model]
        factor = {"images": self.surge, "code": self.code_surge}.get(model, 1.0)
        starts_s = (burst.start_s + burst.end_s) / 2 if model == "code" else burst.start_s
        times = chain(
            poisson(rng, rate, 0.0, starts_s),
            poisson(rng, rate * factor, starts_s, burst.end_s),
            poisson(rng, rate, burst.end_s, self.duration_s),
        )
        rows = Mix((KINDS[model],), stream(seed, f"{model}/lengths")).at(times)
        return [replace(row, model=model) for row in rows]


def _engine(part: Part) -> SimulatedConfig:
    """On its part of the card; the pool is cut by the policy."""
    whole = preset("H100", "qwen2-7b")
    step = StepModel.from_ms(2.7, 0.0044, 0.0022, 1.2e-5) if part.model == "text" else whole.step
    return replace(whole, step=step.slowed(1 / COMPUTE_SHARES[part.model]))
