"""From when on a model counts as overloaded or degraded; what the figures mean, ``health`` says."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthConfig:
    window_s: float = 30.0
    """What is older says nothing of this moment."""
    p90_s: float = 1.0
    """A P90 of the first byte above it is ``degraded``, a longer wait in the queue ``overloaded`` (SPEC S0-58)."""
    error_share: float = 0.01
    """More failed or degraded than this is ``degraded`` (SPEC S0-58)."""
    shed_share: float = 0.05
    """More shed than this is ``overloaded``."""

    def __post_init__(self) -> None:
        if self.window_s <= 0 or self.p90_s <= 0:
            raise ValueError(f"health needs window_s > 0 and p90_s > 0: {self}")
        if not (0 <= self.error_share <= 1 and 0 <= self.shed_share <= 1):
            raise ValueError(f"health's shares lie in [0, 1]: {self}")
