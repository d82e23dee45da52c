"""A hundred users who ask again as soon as they are answered, on six engines of which one is slower.

3000 tokens in, 200 to 500 out, for 400 s. The lengths of answers alone spread their times by 497 / 350 = 1.42 (P99 to
P50). In turns over six equal engines it is no worse; with one 1.5 x slow a prototype measured 3.7 in turns and 1.95
from one queue. ``@equal``: without the slow one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tidegate.engines.presets import preset
from tidegate.simulate.arrivals import Kind, Mix, demands
from tidegate.simulate.scenario import ClosedLoop, Scenario, Slo
from tidegate.simulate.scenarios.arguments import one_of
from tidegate.simulate.streams import stream

CHAT = Kind("chat", 1.0, prompt=(3000, 3000), output=(200, 500))


@dataclass(frozen=True, slots=True)
class Jitter:
    variant: str
    engines: int = 6
    slow: float = 1.5
    users: int = 100
    duration_s: float = 400.0
    patience_s: float = 60.0

    @classmethod
    def parse(cls, argument: str) -> Jitter:
        return cls(one_of("jitter", argument, ("", "equal")))

    def build(self, seed: int) -> Scenario:
        engine = preset("A100", "llama-3-8b", chunk_tokens=512)
        last = engine if self.variant else replace(engine, step=engine.step.slowed(self.slow))
        # More than six engines could answer in that time: about ten a second.
        most = int(25 * self.duration_s)
        rows = Mix((CHAT,), stream(seed, "lengths")).at([0.0] * most)
        return Scenario(
            name=f"jitter@{self.variant}" if self.variant else "jitter",
            engines=(engine,) * (self.engines - 1) + (last,),
            demands=demands(rows, seed, self.patience_s),
            slo=Slo(ttft_s=2.0, tpot_s=0.1),
            tries=2,
            loop=ClosedLoop(users=self.users, duration_s=self.duration_s),
        )
