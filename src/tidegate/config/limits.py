"""Section ``limits``: what one replica is given at a time, beside its memory."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from tidegate.config.section import Ranged, Section
from tidegate.policy.limits.adaptive import LimitConfig
from tidegate.policy.limits.prefill import PrefillConfig

Adaptive = Annotated[
    LimitConfig,
    Ranged(
        enabled=Field(description="Off: no limit on running sequences but the replica's own."),
        initial=Field(ge=1, description="Sequences a replica is given before anything is known of it."),
        minimum=Field(ge=1, description="The limit never falls below it."),
        maximum=Field(ge=1, description="The limit never rises above it."),
        grow_below=Field(gt=1, description="Observed ÷ predicted time to first token up to which the limit may grow."),
        shrink_above=Field(gt=1, description="Observed ÷ predicted time to first token from which it shrinks."),
        window_s=Field(gt=0, description="The limit moves at most once in this time."),
        window_samples=Field(ge=1, description="Finished prefills it wants to have seen before it moves."),
        noise_floor_s=Field(ge=0, description="Predictions below it count as this long."),
    ),
]

Prefill = Annotated[
    PrefillConfig,
    Ranged(
        enabled=Field(description="Off: any number of prompt tokens may wait inside an engine."),
        floor_tokens=Field(ge=1),
        horizon_s=Field(
            gt=0, description="Prompt tokens that wait inside an engine are bounded to what it prefills in this time."
        ),
        most_horizon_s=Field(gt=0),
        late_share=Field(ge=0, lt=1),
    ),
]


class Limits(Section):
    """Gates that need no knowledge of the engine."""

    adaptive: Adaptive = LimitConfig()
    prefill: Prefill = PrefillConfig()
