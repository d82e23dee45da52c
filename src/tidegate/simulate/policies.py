"""Policies by name: ``NAME`` or ``NAME:ARGUMENT``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from difflib import get_close_matches

from tidegate.errors import ConfigError
from tidegate.policy.balance.balancer import BalanceConfig
from tidegate.policy.classes import INTERACTIVE, LONG, ClassConfig, ClassesConfig
from tidegate.policy.groups import GroupConfig, GroupsConfig, PoolConfig
from tidegate.policy.path import Path
from tidegate.policy.path_config import PathConfig
from tidegate.policy.reading import Capacity, ReplicaConfig
from tidegate.policy.slots import SlotsConfig
from tidegate.simulate.baselines.named import BASELINES
from tidegate.simulate.driver import Driver
from tidegate.simulate.native import Native
from tidegate.simulate.replica import SimulatedReplica
from tidegate.simulate.scenario import Part, Scenario
from tidegate.simulate.stage import Policy, Setup, Stage, replicas_of

RESERVE_SHARE = 0.1
"""Of its idle floor, what a group never lends: the configuration's default."""


def find_policy(text: str) -> Policy:
    """Raises ConfigError that names the known policies, or what is wrong with the argument."""
    name, _, argument = text.partition(":")
    if name not in POLICIES:
        close = get_close_matches(name, POLICIES, n=1)
        hint = f"did you mean {close[0]}?" if close else f"known: {', '.join(POLICIES)}"
        raise ConfigError([f"unknown policy {name!r}: {hint}"])
    return POLICIES[name](argument)


NATIVE = ("", "zombie", "contiguous")


def native(argument: str) -> Policy:
    if argument not in NATIVE:
        raise ConfigError([f"native:{argument}: expected native, {' or '.join(f'native:{n}' for n in NATIVE[1:])}"])

    def set_up(stage: Stage) -> Setup:
        replicas = replicas_of(stage, isolated=True, variant=argument)
        return Setup(Native(replicas, stage.clients), replicas)

    return set_up


TIDEGATE = ("isolated", "learned", "slo", "no-affinity")


def tidegate(argument: str) -> Policy:
    """Default parameters; the replicas' capacities are those that an engine reports about itself. Joined by ``+``:

    ``isolated``: no memory is lent between models. ``learned``: slots for as much output as answers turn out to
    have, not for all that is declared. ``slo``: the gateway knows the scenario's TTFT objective. ``no-affinity``: it
    does not ask which replica has read a prompt's beginning.
    """
    words = set(argument.split("+")) - {""}
    if not words <= set(TIDEGATE):
        named = ", ".join(f"tidegate:{word}" for word in TIDEGATE)
        raise ConfigError([f"tidegate:{argument}: expected tidegate, {named}, or several joined by +"])

    def set_up(stage: Stage) -> Setup:
        if "isolated" in words and stage.scenario.pool is None:
            raise ConfigError([f"tidegate:isolated: {stage.scenario.name} has no pool that models share"])
        replicas = replicas_of(stage, isolated="isolated" in words)
        path = Path(path_config(stage, replicas, words), stage.clock.now)
        driver = Driver(path, replicas, stage.clients, stage.clock)
        stage.clock.schedule(stage.clock.now, driver.read_engines)
        return Setup(driver, replicas)

    return set_up


def path_config(stage: Stage, replicas: list[SimulatedReplica], words: set[str]) -> PathConfig:
    pool, groups = stage.scenario.pool, GroupsConfig()
    if pool is not None:
        parts = tuple(_group(part, pool.budget_bytes, isolated="isolated" in words) for part in pool.parts)
        groups = GroupsConfig(pools=(PoolConfig(name="card", budget_bytes=pool.budget_bytes, groups=parts),))
    return PathConfig(
        replicas=tuple(map(replica_config, replicas)),
        slots=SlotsConfig(mode="learned" if "learned" in words else "worst_case"),
        classes=_with_objectives(stage.scenario) if "slo" in words else ClassesConfig(),
        groups=groups,
        balance=BalanceConfig(prefix_affinity="no-affinity" not in words),
    )


def _with_objectives(scenario: Scenario) -> ClassesConfig:
    """The scenario's objective for classes by length, and its own for each class that clients name."""
    defaults = ClassesConfig().classes
    named = {
        demand.class_hint: demand.ttft_slo_s
        for demand in scenario.demands
        if demand.class_hint is not None and demand.ttft_slo_s is not None
    }
    by_length_s = named.pop(INTERACTIVE, scenario.slo.ttft_s)
    held = {name: replace(defaults[name], ttft_slo_s=by_length_s) for name in (INTERACTIVE, LONG)}
    for name, ttft_slo_s in named.items():
        known = defaults.get(name, ClassConfig())
        held[name] = replace(known, ttft_slo_s=ttft_slo_s, max_wait_s=max(known.max_wait_s, ttft_slo_s))
    return ClassesConfig(classes={**defaults, **held})


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


POLICIES: dict[str, Callable[[str], Policy]] = {"native": native, "tidegate": tidegate, **BASELINES}
