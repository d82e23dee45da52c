"""How much unfinished prefill a replica may hold at once.

What stands in the engine's own queue can no longer be ordered, refused or moved, so no more goes
there than keeps it busy: the tokens it prefills in the horizon, and at least one chunk
(``floor_tokens``; the engine backlog of one chunk is what the project's calibration found best).
The rate is the slope of the replica's first-token fit; while that is unknown the floor holds, and
a replica without prefill cost (a remote service) has none. An idle replica takes any prompt.
"""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.policy.estimates import LatencyFit

FEW_SAMPLES = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefillConfig:
    enabled: bool = True
    floor_tokens: int = 2048
    """One chunk: vLLM's default max_num_batched_tokens on the GPUs of the presets."""
    horizon_s: float = 0.15
    most_horizon_s: float = 0.4
    """So far the horizon grows while answers keep the pace of their class (``tpot_slo_s``)."""
    late_share: float = 0.02
    """Part of the answers that may be slower than that."""

    def __post_init__(self) -> None:
        if self.floor_tokens < 1 or self.horizon_s <= 0:
            raise ValueError(f"prefill.floor_tokens and prefill.horizon_s must be positive: {self}")
        if self.most_horizon_s < self.horizon_s or not 0 <= self.late_share < 1:
            raise ValueError(f"prefill needs most_horizon_s >= horizon_s and 0 <= late_share < 1: {self}")


def prefill_bound_tokens(config: PrefillConfig, fit: LatencyFit, horizon_s: float) -> float:
    """Most tokens that may be waiting for their first output token on a replica."""
    if fit.samples < FEW_SAMPLES or not fit.knows_slope:
        return float(config.floor_tokens)
    slope_s = fit.per_unit_s
    return float("inf") if slope_s <= 1e-7 else max(float(config.floor_tokens), horizon_s / slope_s)
