"""Engines of a lighter model beside a scenario's own, for a degradation ladder."""

from __future__ import annotations

from dataclasses import replace

from tidegate.engines.step_model import SimulatedConfig

LIGHT = "light"
"""What the lighter model is called where there is one main model."""
STEP_SHARE = 0.25
"""Its step time as a part of the main model's: one with a quarter of the parameters, at the memory's bandwidth."""
CHUNK_TOKENS = 2048


def lighter(engine: SimulatedConfig) -> SimulatedConfig:
    """One on the same GPU, with the same KV memory."""
    return replace(engine, step=engine.step.slowed(STEP_SHARE), chunk_tokens=CHUNK_TOKENS, notices_aborts=True)
