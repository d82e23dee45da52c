"""What an engine can do at its two ends: when its queue never runs empty, and when nobody else asks."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import fmean

from tidegate.engines.simulated import EngineEventKind, SimulatedConfig, SimulatedEngine
from tidegate.simulate.arrivals import Arrival
from tidegate.simulate.visit import Demand


def saturated_rate(config: SimulatedConfig, arrivals: Iterable[Arrival]) -> float:
    """Requests a second of one engine that has all of ``arrivals`` waiting from the start.

    Counted between the first and the last fifth of the answers, so that neither the empty batch of
    the start nor the emptying one of the end counts.
    """
    engine = SimulatedEngine(config)
    for index, arrival in enumerate(arrivals):
        engine.submit(index, arrival.prompt_tokens, arrival.output_tokens, 0.0)
    ends = [event.at for event in engine.advance(float("inf")) if event.kind is EngineEventKind.FINISHED]
    if len(ends) < 10:
        raise ValueError(f"capacity from {len(ends)} answers: at least 10 are needed")
    first, last = len(ends) // 5, len(ends) * 4 // 5
    return (last - first) / (ends[last] - ends[first])


def calm_e2e_s(config: SimulatedConfig, demands: Iterable[Demand]) -> float:
    """Mean seconds of a whole answer when each of ``demands`` has an idle engine for itself."""
    times = []
    for demand in demands:
        engine = SimulatedEngine(config)
        engine.submit(demand.index, demand.prompt_tokens, demand.output_tokens, 0.0)
        times += [event.at for event in engine.advance(float("inf")) if event.kind is EngineEventKind.FINISHED]
    return fmean(times)
