"""What single tenants have of their own, where they differ from everybody."""

from __future__ import annotations

from dataclasses import dataclass, field

USUAL_WEIGHT = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantConfig:
    """One tenant. None: as everybody, by ``QuotaConfig``."""

    weight: float = USUAL_WEIGHT
    """Its part of what is served while several tenants wait, against the weights of the others."""
    max_in_flight: int | None = None
    """In place of ``quota.max_in_flight``."""
    requests_per_minute: int | None = None
    """In place of ``quota.requests_per_minute``."""
    tokens_per_minute: int | None = None
    """In place of ``quota.tokens_per_minute``."""

    def __post_init__(self) -> None:
        bounds = (self.max_in_flight, self.requests_per_minute, self.tokens_per_minute)
        if self.weight <= 0 or any(bound is not None and bound < 1 for bound in bounds):
            raise ValueError(f"a tenant needs weight > 0, and bounds of at least 1 or none: {self}")


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantsConfig:
    named: dict[str, TenantConfig] = field(default_factory=dict)
    """By the name that the API key gives (``server.api_keys[].tenant``)."""

    def weight_of(self, tenant: str) -> float:
        """Its weight in the fair queue; 1.0 where none is set."""
        known = self.named.get(tenant)
        return USUAL_WEIGHT if known is None else known.weight
