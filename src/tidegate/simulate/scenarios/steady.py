"""Constant load of chat requests: what a gateway costs or gains when nothing is wrong."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import cycle, islice

from tidegate.engines.presets import preset
from tidegate.engines.step_model import SimulatedConfig
from tidegate.simulate.arrivals import Arrival, demands, poisson
from tidegate.simulate.capacity import saturated_rate
from tidegate.simulate.scenario import Scenario, Slo
from tidegate.simulate.scenarios.arguments import one_of, positive_number
from tidegate.simulate.streams import stream
from tidegate.simulate.traces import load_trace

ENGINES = 4
SLOW = 1.5
CAPACITY_SAMPLE = 4000


@dataclass(frozen=True, slots=True)
class Steady:
    load: float
    """Share of the saturated rate of four engines at their normal speed."""
    variant: str = ""
    duration_s: float = 900.0
    patience_s: float = 60.0

    @classmethod
    def parse(cls, argument: str) -> Steady:
        """``LOAD``, ``LOAD/one-slow``: one of the four takes 1.5 x as long, ``LOAD/long``: half an hour, and clients
        that leave after 7 s."""
        load, _, variant = argument.partition("/")
        share = positive_number("steady", load, 0.75)
        if one_of(f"steady@{load}", variant, ("", "one-slow", "long")) == "long":
            return cls(share, variant, duration_s=1800.0, patience_s=7.0)
        return cls(share, variant)

    def build(self, seed: int) -> Scenario:
        engine = preset("A100", "llama-3-8b", chunk_tokens=512)
        trace = load_trace("azure-conv", seed)
        lengths = list(trace.arrivals)
        stream(seed, "lengths").shuffle(lengths)
        capacity_per_s = ENGINES * saturated_rate(engine, lengths[:CAPACITY_SAMPLE])
        times = list(poisson(stream(seed, "arrivals"), self.load * capacity_per_s, 0.0, self.duration_s))
        return Scenario(
            name=f"steady@{self.load:g}" + (f"/{self.variant}" if self.variant else ""),
            engines=(engine,) * (ENGINES - 1) + (self._last(engine),),
            demands=demands(_at(times, lengths), seed, self.patience_s),
            slo=Slo(ttft_s=2.0, tpot_s=0.1),
            tries=2,
            source=f"Poisson arrivals; lengths: {trace.source}",
            notes={"capacity_per_s": round(capacity_per_s, 2), "rate_per_s": round(self.load * capacity_per_s, 2)},
        )

    def _last(self, engine: SimulatedConfig) -> SimulatedConfig:
        return replace(engine, step=engine.step.slowed(SLOW)) if self.variant == "one-slow" else engine


def _at(times: list[float], lengths: list[Arrival]) -> list[Arrival]:
    """The lengths at the given times, from the start again when they run out."""
    rows = islice(cycle(lengths), len(times))
    return [replace(row, at=time, label="chat") for time, row in zip(times, rows, strict=True)]
