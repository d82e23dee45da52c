"""A trace, played as recorded or K times as fast.

Clients wait 60 s for the first token and call once: the offered load is the trace's own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tidegate.engines.presets import preset
from tidegate.engines.step_model import SimulatedConfig
from tidegate.errors import ConfigError
from tidegate.simulate.arrivals import Arrival, demands
from tidegate.simulate.scenario import Scenario, Slo
from tidegate.simulate.scenarios.arguments import positive_number
from tidegate.simulate.traces import load_trace
from tidegate.simulate.visit import BLOCK_TOKENS

SLOW = 1.25
"""Such an engine takes a quarter longer than whoever tuned a number for it believed."""
LONG_PROMPT_TOKENS = 2000
"""Longer prompts are reported as class ``long``: shedding starves them first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    trace: str
    speed: float
    variant: str
    """What follows the speed in the name."""
    engines: tuple[SimulatedConfig, ...]
    patience_s: float = 60.0

    def build(self, seed: int) -> Scenario:
        trace = load_trace(self.trace, seed)
        rows = [self._faster(arrival) for arrival in trace.arrivals]
        return Scenario(
            name=f"{self.trace}@{self.speed:g}{self.variant}",
            engines=self.engines,
            demands=demands(rows, seed, self.patience_s),
            slo=Slo(ttft_s=2.0, tpot_s=0.1),
            tries=1,
            source=trace.source,
            notes={"rate_per_s": round(len(rows) / max(row.at for row in rows), 2)},
        )

    def _faster(self, arrival: Arrival) -> Arrival:
        label = "long" if arrival.prompt_tokens > LONG_PROMPT_TOKENS else "short"
        return replace(arrival, at=arrival.at / self.speed, label=label)


def azure_conv(argument: str) -> Replay:
    return _replay("azure-conv", argument, engines=1, chunk_tokens=512)


def azure_code(argument: str) -> Replay:
    return _replay("azure-code", argument, engines=4, chunk_tokens=512)


def mooncake(argument: str) -> Replay:
    """Without prefix cache, unless ``/cached`` is asked for."""
    return _replay("mooncake", argument, engines=8, chunk_tokens=2048)


def _replay(trace: str, argument: str, engines: int, chunk_tokens: int) -> Replay:
    """``K``, ``K/N`` with N engines, and either with ``/slow``: every step SLOW times as long as the model says;
    or with ``/cached``: engines with a prefix cache."""
    speed, *words = argument.split("/")
    engine = preset("A100", "llama-3-8b", chunk_tokens=chunk_tokens)
    for word in words:
        if word == "slow":
            engine = replace(engine, step=engine.step.slowed(SLOW))
        elif word == "cached":
            engine = replace(engine, cached_block_tokens=BLOCK_TOKENS)
        elif word.isdigit() and int(word):
            engines = int(word)
        else:
            raise ConfigError([f"{trace}@{argument}: after the speed, expected /slow, /cached or a number of engines"])
    return Replay(
        trace=trace,
        speed=positive_number(trace, speed, 1.0),
        variant="".join(f"/{word}" for word in words),
        engines=(engine,) * engines,
    )
