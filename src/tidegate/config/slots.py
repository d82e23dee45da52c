"""Section ``slots``: deterministic memory."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from tidegate.config.section import Section
from tidegate.policy.slots import SlotsConfig

_POLICY = SlotsConfig()


class Slots(Section):
    """A request is admitted only when its whole KV reservation is free on one replica."""

    enabled: bool = _POLICY.enabled
    """Off: memory is no gate; the limits alone protect a replica."""
    mode: Literal["worst_case", "learned"] = _POLICY.mode
    """``worst_case``: reserve prompt + max_tokens, so that no engine ever preempts. ``learned``: reserve what such
    answers turned out to need, and more while one runs on; many more at once where clients declare much too much."""
    quantile: Annotated[float, Field(gt=0, lt=1)] = _POLICY.quantile
    """``learned``: share of the streams whose first reservation is to be enough. Higher: safer, fewer at once."""
    slot_size_mib: Annotated[int, Field(ge=1)] | None = None
    """Size of one slot for replicas whose ``bytes_per_token`` is known (alias: VOLC_MEMORY_SLOT_SIZE, SPEC S0-14)."""
    overcommit: Literal["clamp", "fail"] = "clamp"
    """More sequences than slots: lower them with one WARN line, or refuse to start (SPEC C1)."""
    default_max_tokens: Annotated[int, Field(ge=1)] = _POLICY.default_max_tokens
    """Output bound of a request that sets none; it is written into the request, so that the reservation holds."""
