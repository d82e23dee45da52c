"""What a simulated run is made of: engines, traffic, faults, and what counts as good."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from tidegate.engines.step_model import SimulatedConfig
from tidegate.simulate.fault import Fault
from tidegate.simulate.visit import MODEL, Demand


@dataclass(frozen=True, slots=True)
class Slo:
    """A request is good when it meets both. Not a deadline: clients wait longer."""

    ttft_s: float
    tpot_s: float
    """Mean time per output token after the first."""


@dataclass(frozen=True, slots=True)
class Burst:
    """The window in which load is above capacity."""

    start_s: float
    end_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One model's engine and its part of a memory that several engines draw on."""

    model: str
    bytes_per_token: int
    """KV bytes of one token."""
    floor_share: float
    """Of the budget: guaranteed to it, and all that it has where pools are isolated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedPool:
    """KV memory of several engines, one part for each, in the order of the scenario's engines."""

    budget_bytes: int
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosedLoop:
    """So many users take the demands in turn: each calls again as soon as its last request has ended."""

    users: int
    duration_s: float
    """What has not ended by then is left out of the report."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One seed's traffic for one fleet."""

    name: str
    engines: tuple[SimulatedConfig, ...]
    demands: list[Demand]
    slo: Slo
    tries: int
    """Calls that a client makes at most for one request."""
    heeds_retry_after: bool = True
    """False: a refused client comes back as soon as one that lost patience."""
    returns_after_timeout: bool = True
    """False: whoever has waited in vain is gone, and only those that were refused call again."""
    loop: ClosedLoop | None = None
    """None: calls come at their times, whatever became of those before."""
    burst: Burst | None = None
    faults: tuple[Fault, ...] = ()
    done_within_s: float | None = None
    """In which a whole answer, or a whole chain of calls, is worth having; for the report. None: nothing is said."""
    calm_e2e_s: float | None = None
    """Mean time of a whole answer where nobody else asks, for the report; None: not worked out."""
    models: tuple[str, ...] = ()
    """What each engine serves, in their order; empty: all of them the one model."""
    light_models: dict[str, str] = field(default_factory=dict)
    """By model, a lighter one that may answer in its place. Only a degradation ladder sends anything to its engines,
    which stand after all others; every other policy has none of them."""
    pool: SharedPool | None = None
    """Engines of several models on one budget of memory; None: one model, and every engine has its own."""
    shares: dict[str, float] = field(default_factory=dict)
    """Tenants' usual parts of the work, in any unit: what one would have agreed with them. Empty: nothing is said."""
    source: str = "generated"
    """Where the traffic comes from."""
    notes: dict[str, float | int | str] = field(default_factory=dict)
    """Computed figures worth printing, such as the capacity that the load is a share of."""

    @property
    def main_engines(self) -> tuple[SimulatedConfig, ...]:
        """Without those of lighter models."""
        lighter = self.light_models.values()
        served = self.models or (MODEL,) * len(self.engines)
        return tuple(each for each, model in zip(self.engines, served, strict=True) if model not in lighter)


class ScenarioBuilder(Protocol):
    """A named scenario; equal seeds give equal scenarios."""

    def build(self, seed: int) -> Scenario: ...
