"""Section ``balance``: which replica of an upstream gets a request."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from tidegate.config.section import Ranged
from tidegate.policy.balance.balancer import BalanceConfig

Balance = Annotated[
    BalanceConfig, Ranged(bounded_load=Field(ge=1), slow_start_s=Field(ge=0), panic_share=Field(ge=0, le=1))
]
