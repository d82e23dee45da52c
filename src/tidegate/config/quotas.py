"""Sections ``quota``, ``tenants`` and ``upstreams.<name>.limits``: what one tenant, and one model, may use."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from tidegate.config.section import Ranged
from tidegate.policy.limits.per_model import ModelConfig
from tidegate.policy.quota import QuotaConfig
from tidegate.policy.tenants import TenantConfig

Quota = Annotated[
    QuotaConfig,
    Ranged(max_in_flight=Field(ge=1), requests_per_minute=Field(ge=1), tokens_per_minute=Field(ge=1)),
]

Tenant = Annotated[
    TenantConfig,
    Ranged(
        weight=Field(gt=0),
        max_in_flight=Field(ge=1),
        requests_per_minute=Field(ge=1),
        tokens_per_minute=Field(ge=1),
    ),
]

ModelLimits = Annotated[
    ModelConfig,
    Ranged(requests_per_minute=Field(ge=1), tokens_per_minute=Field(ge=1), knee=Field(ge=1)),
]

Tenants = dict[Annotated[str, Field(min_length=1, max_length=128)], Tenant]
