"""A sales campaign: steady load, then a step far above capacity, then the base load again."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain

from tidegate.engines.presets import preset
from tidegate.simulate.arrivals import Kind, Mix, demands, poisson
from tidegate.simulate.capacity import saturated_rate
from tidegate.simulate.scenario import Burst, Scenario, Slo
from tidegate.simulate.scenarios.arguments import one_of
from tidegate.simulate.scenarios.lighter import LIGHT, lighter
from tidegate.simulate.streams import stream
from tidegate.simulate.visit import MODEL, Demand

MIX = (
    Kind("short", 0.8, prompt=(150, 450), output=(75, 225)),
    Kind("long", 0.2, prompt=(2400, 3600), output=(300, 500)),
)
CAPACITY_SAMPLE = 4000
"""Requests whose saturated run gives the capacity; more change it by less than 1 %."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Campaign:
    """``step_s`` of ``step_factor`` × base load from ``step_at_s`` on; base is a share of capacity."""

    name: str
    step_s: float
    engines: int = 4
    chunk_tokens: int = 2048
    base_share: float = 0.6
    step_factor: float = 4.2
    step_at_s: float = 40.0
    duration_s: float = 120.0
    patience_s: float = 7.0
    tries: int = 2
    heeds_retry_after: bool = True
    retry_delay_s: float | None = None
    """None: each waits 0.5-1.5 s of its own."""
    notices_aborts: bool = True
    light: int = 0
    """Replicas of a lighter model, each with a quarter of the step time, for whoever degrades."""

    def build(self, seed: int) -> Scenario:
        engine = preset("A100", "llama-3-8b", chunk_tokens=self.chunk_tokens)
        capacity_per_s = self.engines * self._engine_rate()
        base_per_s = self.base_share * capacity_per_s
        burst = Burst(self.step_at_s, self.step_at_s + self.step_s)
        rng = stream(seed, "arrivals")
        times = chain(
            poisson(rng, base_per_s, 0.0, burst.start_s),
            poisson(rng, base_per_s * self.step_factor, burst.start_s, burst.end_s),
            poisson(rng, base_per_s, burst.end_s, self.duration_s),
        )
        return Scenario(
            name=self.name,
            engines=(replace(engine, notices_aborts=self.notices_aborts),) * self.engines
            + (lighter(engine),) * self.light,
            models=(MODEL,) * self.engines + (LIGHT,) * self.light,
            light_models={MODEL: LIGHT} if self.light else {},
            demands=self._hasty(demands(Mix(MIX, stream(seed, "lengths")).at(times), seed, self.patience_s)),
            slo=Slo(ttft_s=2.0, tpot_s=0.1),
            tries=self.tries,
            heeds_retry_after=self.heeds_retry_after,
            burst=burst,
            notes={
                "capacity_per_s": round(capacity_per_s, 2),
                "base_per_s": round(base_per_s, 2),
                "step_per_s": round(base_per_s * self.step_factor, 2),
            },
        )

    def _hasty(self, drawn: list[Demand]) -> list[Demand]:
        delay_s = self.retry_delay_s
        return drawn if delay_s is None else [replace(each, retry_delay_s=delay_s) for each in drawn]

    def _engine_rate(self) -> float:
        engine = preset("A100", "llama-3-8b", chunk_tokens=self.chunk_tokens)
        sample = Mix(MIX, stream(0, "capacity")).at([0.0] * CAPACITY_SAMPLE)
        return saturated_rate(engine, sample)


def campaign(argument: str) -> Campaign:
    """What a gateway can do that has a lighter model to fall back on: two replicas of it, each with a quarter of the
    step time. 17 s of the step, so that a queue without bound outgrows the patience of 7 s.

    ``@one-light``: a single one, and a step of 15 s. ``@six``: the same traffic on six engines of the main model and
    none of a lighter one, which is what else one could do with the two.
    """
    variant = one_of("campaign", argument, ("", "one-light", "six"))
    if variant == "one-light":
        return Campaign(name="campaign@one-light", step_s=15.0, light=1)
    if variant == "six":
        return Campaign(name="campaign@six", step_s=17.0, engines=6, base_share=0.4)
    return Campaign(name="campaign", step_s=17.0, light=2)


def campaign_bare(argument: str) -> Campaign:
    """No lighter model to fall back on: what queueing, order and early refusal can do alone.

    ``@heedless``: refused clients ignore Retry-After and are back after about a second.
    """
    variant = one_of("campaign-bare", argument, ("", "heedless"))
    name = f"campaign-bare@{variant}" if variant else "campaign-bare"
    return Campaign(name=name, step_s=15.0, heeds_retry_after=variant != "heedless")


def retry_storm(argument: str) -> Campaign:
    """Clients that call again at once, up to three times, whatever they are told (a 429 and its Retry-After too).

    70 % of capacity, for 10 s 4.2 x that, patience 5 s: what a fleet needs to find back afterwards is what is asked
    here. The load and the patience are those at which a prototype saw it fail: errors 10.8 % and 78 s until it had
    recovered without a gateway, 81 % and never with engines that do not notice that clients left. ``@zombie``: those
    engines. ``@heeding``: clients that wait as long as Retry-After says. ``@light``: with the two replicas of a lighter
    model that ``campaign`` has.
    """
    variant = one_of("retry-storm", argument, ("", "zombie", "heeding", "light"))
    return Campaign(
        name=f"retry-storm@{variant}" if variant else "retry-storm",
        step_s=10.0,
        base_share=0.7,
        duration_s=300.0,
        patience_s=5.0,
        tries=4,
        heeds_retry_after=variant == "heeding",
        retry_delay_s=0.0,
        notices_aborts=variant != "zombie",
        light=2 if variant == "light" else 0,
    )
