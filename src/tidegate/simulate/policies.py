"""Policies by name: ``NAME`` or ``NAME:ARGUMENT``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from difflib import get_close_matches

from tidegate.errors import ConfigError
from tidegate.policy.groups import GroupConfig, GroupsConfig, PoolConfig
from tidegate.policy.path import Path
from tidegate.policy.path_config import PathConfig
from tidegate.policy.reading import Capacity, ReplicaConfig
from tidegate.policy.slots import SlotsConfig
from tidegate.simulate.clients import Clients
from tidegate.simulate.clock import Clock
from tidegate.simulate.driver import Driver
from tidegate.simulate.front import LedgerFront
from tidegate.simulate.native import Native
from tidegate.simulate.replica import SimulatedReplica
from tidegate.simulate.scenario import Part, Scenario

RESERVE_SHARE = 0.1
"""Of its idle floor, what a group never lends: the configuration's default."""


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


def find_policy(text: str) -> Policy:
    """Raises ConfigError that names the known policies, or what is wrong with the argument."""
    name, _, argument = text.partition(":")
    if name not in POLICIES:
        close = get_close_matches(name, POLICIES, n=1)
        hint = f"did you mean {close[0]}?" if close else f"known: {', '.join(POLICIES)}"
        raise ConfigError([f"unknown policy {name!r}: {hint}"])
    return POLICIES[name](argument)


def replicas_of(stage: Stage, *, isolated: bool = False, variant: str = "") -> list[SimulatedReplica]:
    """The scenario's engines on the stage's clock, in the ``variant`` of ``native`` that is asked for.

    Where they share a pool, each engine's own is as large as the whole budget, and only a ledger keeps their sum
    within it; ``isolated`` cuts each down to its part, as separate deployments have it.
    """
    notices, contiguous, pool = variant != "zombie", variant == "contiguous", stage.scenario.pool
    engines = [replace(each, notices_aborts=notices, is_contiguous=contiguous) for each in stage.scenario.engines]
    if pool is None:
        return [SimulatedReplica(f"replica-{index}", each, stage.clock) for index, each in enumerate(engines)]
    found = []
    for engine, part in zip(engines, pool.parts, strict=True):
        share = part.floor_share if isolated else 1.0
        config = replace(engine, kv_tokens=int(share * pool.budget_bytes) // part.bytes_per_token)
        found.append(SimulatedReplica(f"{part.model}-0", config, stage.clock, part))
    return found


NATIVE = ("", "zombie", "contiguous")


def native(argument: str) -> Policy:
    if argument not in NATIVE:
        raise ConfigError([f"native:{argument}: expected native, {' or '.join(f'native:{n}' for n in NATIVE[1:])}"])

    def set_up(stage: Stage) -> Setup:
        replicas = replicas_of(stage, isolated=True, variant=argument)
        return Setup(Native(replicas, stage.clients), replicas)

    return set_up


TIDEGATE = ("", "isolated", "learned")


def tidegate(argument: str) -> Policy:
    """Default parameters; the replicas' capacities are those that an engine reports about itself.

    ``tidegate:learned``: slots for as much output as answers turn out to have, not for all that is declared.
    """
    if argument not in TIDEGATE:
        raise ConfigError([f"tidegate:{argument}: expected tidegate, tidegate:isolated or tidegate:learned"])
    isolated = argument == "isolated"
    slots = SlotsConfig(mode="learned" if argument == "learned" else "worst_case")

    def set_up(stage: Stage) -> Setup:
        if isolated and stage.scenario.pool is None:
            raise ConfigError([f"tidegate:isolated: {stage.scenario.name} has no pool that models share"])
        replicas = replicas_of(stage, isolated=isolated)
        path = Path(replace(path_config(stage, replicas, isolated=isolated), slots=slots), stage.clock.now)
        driver = Driver(path, replicas, stage.clients, stage.clock)
        stage.clock.schedule(stage.clock.now, driver.read_engines)
        return Setup(driver, replicas)

    return set_up


def path_config(stage: Stage, replicas: list[SimulatedReplica], *, isolated: bool) -> PathConfig:
    configs, pool = tuple(map(replica_config, replicas)), stage.scenario.pool
    if pool is None:
        return PathConfig(replicas=configs)
    groups = tuple(_group(part, pool.budget_bytes, isolated=isolated) for part in pool.parts)
    shared = PoolConfig(name="card", budget_bytes=pool.budget_bytes, groups=groups)
    return PathConfig(replicas=configs, groups=GroupsConfig(pools=(shared,)))


def _group(part: Part, budget_bytes: int, *, isolated: bool) -> GroupConfig:
    floor_bytes = int(part.floor_share * budget_bytes)
    return GroupConfig(
        name=part.model,
        floor_bytes=floor_bytes,
        cap_bytes=floor_bytes if isolated else budget_bytes,
        reserve_bytes=int(RESERVE_SHARE * floor_bytes),
    )


def replica_config(replica: SimulatedReplica) -> ReplicaConfig:
    config, part = replica.engine.config, replica.part
    return ReplicaConfig(
        name=replica.name,
        upstream=replica.model,
        capacity=Capacity(
            kv_tokens=config.kv_tokens,
            sequences=config.max_sequences,
            context_tokens=config.longest_sequence,
            bytes_per_token=None if part is None else part.bytes_per_token,
        ),
        confirms_aborts=True,
        group=None if part is None else part.model,
    )


POLICIES: dict[str, Callable[[str], Policy]] = {"native": native, "tidegate": tidegate}
