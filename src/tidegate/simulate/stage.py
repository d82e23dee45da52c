"""What a policy is put on, and what it makes of it: a front on its engines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace

from tidegate.engines.step_model import SimulatedConfig
from tidegate.simulate.clients import Clients
from tidegate.simulate.clock import Clock
from tidegate.simulate.front import LedgerFront
from tidegate.simulate.replica import SimulatedReplica
from tidegate.simulate.scenario import Scenario
from tidegate.simulate.visit import MODEL


@dataclass(frozen=True, slots=True)
class Stage:
    """What a policy is put on: one scenario, one seed, one clock."""

    scenario: Scenario
    seed: int
    clock: Clock
    clients: Clients


@dataclass(frozen=True, slots=True)
class Setup:
    """A front on its engines."""

    front: LedgerFront
    replicas: list[SimulatedReplica]


Policy = Callable[[Stage], Setup]


def replicas_of(
    stage: Stage, *, isolated: bool = False, variant: str = "", with_light: bool = False
) -> list[SimulatedReplica]:
    """The scenario's engines on the stage's clock, in the ``variant`` of ``native`` that is asked for, those of lighter
    models only ``with_light``.

    Where they share a pool, each engine's own is as large as the whole budget, and only a ledger keeps their sum
    within it; ``isolated`` cuts each down to its part, as separate deployments have it.
    """
    scenario, notices, contiguous = stage.scenario, variant != "zombie", variant == "contiguous"
    engines = [
        replace(each, notices_aborts=each.notices_aborts and notices, is_contiguous=contiguous)
        for each in (scenario.engines if with_light else scenario.main_engines)
    ]
    if scenario.models:
        return _named(engines, scenario.models, stage.clock)
    pool = scenario.pool
    if pool is None:
        return [SimulatedReplica(f"replica-{index}", each, stage.clock) for index, each in enumerate(engines)]
    found = []
    for engine, part in zip(engines, pool.parts, strict=True):
        share = part.floor_share if isolated else 1.0
        config = replace(engine, kv_tokens=int(share * pool.budget_bytes) // part.bytes_per_token)
        found.append(SimulatedReplica(f"{part.model}-0", config, stage.clock, part))
    return found


def _named(engines: list[SimulatedConfig], models: tuple[str, ...], clock: Clock) -> list[SimulatedReplica]:
    """Numbered within their models; those of the one model are called as they are where there is no other."""
    seen: Counter[str] = Counter()
    found = []
    # Lighter models stand last, so that what is left out of ``engines`` is the end of ``models``.
    for engine, model in zip(engines, models, strict=False):
        name = f"{'replica' if model == MODEL else model}-{seen[model]}"
        seen[model] += 1
        found.append(SimulatedReplica(name, engine, clock, model=model))
    return found
