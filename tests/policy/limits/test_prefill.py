"""How much unfinished prefill may stand before a replica."""

from __future__ import annotations

import pytest

from tidegate.policy.estimates import LatencyFit
from tidegate.policy.limits.prefill import FEW_SAMPLES, PrefillConfig, prefill_bound_tokens

CONFIG = PrefillConfig(floor_tokens=2048, horizon_s=0.15)


def fitted(per_token_s: float, samples: int = 100, *, alike: bool = False) -> LatencyFit:
    fit = LatencyFit()
    for number in range(samples):
        tokens = 500 if alike else 100 * (number + 1)
        fit.learn(tokens, 0.02 + per_token_s * tokens)
    return fit


def test_until_the_rate_is_known_the_floor_holds() -> None:
    assert prefill_bound_tokens(CONFIG, LatencyFit(), 0.15) == 2048
    assert prefill_bound_tokens(CONFIG, fitted(1e-5, FEW_SAMPLES - 1), 0.15) == 2048
    assert prefill_bound_tokens(CONFIG, fitted(1e-5, alike=True), 0.15) == 2048


def test_it_is_what_the_replica_prefills_within_the_horizon() -> None:
    assert prefill_bound_tokens(CONFIG, fitted(2e-5, FEW_SAMPLES), 0.15) == pytest.approx(7500, rel=0.01)


def test_a_slow_replica_gets_one_chunk_all_the_same() -> None:
    assert prefill_bound_tokens(CONFIG, fitted(1e-3), 0.15) == 2048


def test_a_replica_without_prefill_cost_has_no_bound() -> None:
    assert prefill_bound_tokens(CONFIG, fitted(0.0), 0.15) == float("inf")


@pytest.mark.parametrize(("floor_tokens", "horizon_s"), [(0, 0.1), (1, 0.0)])
def test_impossible_parameters_are_refused(floor_tokens: int, horizon_s: float) -> None:
    with pytest.raises(ValueError, match="must be positive"):
        PrefillConfig(floor_tokens=floor_tokens, horizon_s=horizon_s)


@pytest.mark.parametrize("fields", [{"most_horizon_s": 0.1}, {"late_share": -0.1}, {"late_share": 1.0}])
def test_a_horizon_has_room_to_grow_and_a_share_is_a_share(fields: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="prefill needs"):
        PrefillConfig(**fields)  # type: ignore[arg-type]  # parts of the configuration by name, one type each
