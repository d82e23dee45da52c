"""What single tenants have of their own."""

from __future__ import annotations

import pytest

from tidegate.policy.tenants import TenantConfig, TenantsConfig


def test_a_tenant_weighs_what_is_written_and_every_other_one() -> None:
    tenants = TenantsConfig(named={"gold": TenantConfig(weight=3.0), "capped": TenantConfig(max_in_flight=4)})
    assert [tenants.weight_of(name) for name in ("gold", "capped", "unknown")] == [3.0, 1.0, 1.0]


@pytest.mark.parametrize(
    "wrong", [{"weight": 0.0}, {"max_in_flight": 0}, {"requests_per_minute": 0}, {"tokens_per_minute": -1}]
)
def test_weights_and_bounds_are_above_zero(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="a tenant needs"):
        TenantConfig(**wrong)  # type: ignore[arg-type]  # a table of one number each
