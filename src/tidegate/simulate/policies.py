"""Policies by name: ``NAME`` or ``NAME:ARGUMENT``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from difflib import get_close_matches

from tidegate.errors import ConfigError
from tidegate.policy.path import Path
from tidegate.policy.path_config import PathConfig
from tidegate.policy.reading import Capacity, ReplicaConfig
from tidegate.simulate.clients import Clients
from tidegate.simulate.clock import Clock
from tidegate.simulate.driver import UPSTREAM, Driver
from tidegate.simulate.front import Front
from tidegate.simulate.native import Native
from tidegate.simulate.replica import SimulatedReplica
from tidegate.simulate.scenario import Scenario


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

    front: Front
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


def replicas_of(stage: Stage, zombie: bool = False) -> list[SimulatedReplica]:
    """The scenario's engines on the stage's clock."""
    return [
        SimulatedReplica(f"replica-{index}", replace(engine, notices_aborts=not zombie), stage.clock)
        for index, engine in enumerate(stage.scenario.engines)
    ]


def native(argument: str) -> Policy:
    if argument not in ("", "zombie"):
        raise ConfigError([f"native:{argument}: expected native or native:zombie"])

    def set_up(stage: Stage) -> Setup:
        replicas = replicas_of(stage, zombie=argument == "zombie")
        return Setup(Native(replicas, stage.clients), replicas)

    return set_up


def tidegate(argument: str) -> Policy:
    """Default parameters; the replicas' capacities are those that an engine reports about itself."""
    if argument:
        raise ConfigError([f"tidegate:{argument}: tidegate takes no argument"])

    def set_up(stage: Stage) -> Setup:
        replicas = replicas_of(stage)
        path = Path(PathConfig(replicas=tuple(map(replica_config, replicas))), stage.clock.now)
        driver = Driver(path, replicas, stage.clients, stage.clock)
        stage.clock.schedule(stage.clock.now, driver.read_engines)
        return Setup(driver, replicas)

    return set_up


def replica_config(replica: SimulatedReplica) -> ReplicaConfig:
    config = replica.engine.config
    return ReplicaConfig(
        name=replica.name,
        upstream=UPSTREAM,
        capacity=Capacity(
            kv_tokens=config.kv_tokens,
            sequences=config.max_sequences,
            context_tokens=config.longest_sequence,
        ),
        confirms_aborts=True,
    )


POLICIES: dict[str, Callable[[str], Policy]] = {"native": native, "tidegate": tidegate}
