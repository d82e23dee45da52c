"""Policies by name: ``NAME`` or ``NAME:ARGUMENT``."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from difflib import get_close_matches

from tidegate.config import load, set_flags, upstream_flags
from tidegate.config.assemble import path_config as assembled
from tidegate.errors import ConfigError
from tidegate.policy.classes import INTERACTIVE, LONG, ClassConfig, ClassesConfig
from tidegate.policy.groups import GroupConfig, GroupsConfig, PoolConfig
from tidegate.policy.path import Path
from tidegate.policy.path_config import PathConfig
from tidegate.policy.reading import Capacity, ReplicaConfig
from tidegate.policy.tenants import TenantConfig, TenantsConfig
from tidegate.simulate.baselines.named import BASELINES
from tidegate.simulate.driver import Driver
from tidegate.simulate.native import Native
from tidegate.simulate.replica import SimulatedReplica
from tidegate.simulate.scenario import Part, Scenario
from tidegate.simulate.stage import Policy, Setup, Stage, replicas_of

BUILT_IN = PathConfig()
RELAXED = ClassConfig(weight=0.25, max_share=0.5)
"""A class with more patience than ``interactive``, if nothing is said of it: as ``batch``, but it does not yield."""
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


TIDEGATE = ("isolated", "learned", "slo", "no-affinity", "shares", "ladder")


def tidegate(argument: str) -> Policy:
    """Default parameters; the replicas' capacities are those that an engine reports about itself. Joined by ``+``:

    ``isolated``: no memory is lent between models. ``learned``: slots for as much output as answers turn out to
    have, not for all that is declared. ``slo``: the gateway knows the scenario's TTFT objective. ``no-affinity``: it
    does not ask which replica has read a prompt's beginning. ``shares``: tenants weigh what they usually ask for, where
    the scenario says that. ``ladder``: a lighter model may answer in place of its own, where the scenario has engines
    of one. ``KEY=VALUE``: a line of the configuration, such as
    ``preset=customer-service`` or ``classes.long.max_wait_s=30``.
    """
    words = set(argument.split("+")) - {""}
    if not {word for word in words if "=" not in word} <= set(TIDEGATE):
        named = ", ".join(f"tidegate:{word}" for word in TIDEGATE)
        raise ConfigError(
            [f"tidegate:{argument}: expected tidegate, {named}, tidegate:KEY=VALUE, or several joined by +"]
        )
    configured = _configured(words)

    def set_up(stage: Stage) -> Setup:
        if "isolated" in words and stage.scenario.pool is None:
            raise ConfigError([f"tidegate:isolated: {stage.scenario.name} has no pool that models share"])
        if "ladder" in words and not stage.scenario.light_models:
            raise ConfigError([f"tidegate:ladder: {stage.scenario.name} has no engine of a lighter model"])
        replicas = replicas_of(stage, isolated="isolated" in words, with_light="ladder" in words)
        path = Path(path_config(stage, replicas, words, configured), stage.clock.now)
        driver = Driver(path, replicas, stage.clients, stage.clock)
        stage.clock.schedule(stage.clock.now, driver.read_engines)
        return Setup(driver, replicas)

    return set_up


def _configured(words: set[str]) -> PathConfig:
    """What a file with these lines gives. Raises ConfigError."""
    lines = sorted(word for word in words if "=" in word)
    if not lines:
        return BUILT_IN
    # The engines are the scenario's; a configuration without one is not complete.
    overrides = {**upstream_flags(["http://127.0.0.1:1"]), **set_flags(lines)}
    return assembled(load(None, overrides, {}))


def path_config(
    stage: Stage, replicas: list[SimulatedReplica], words: set[str], configured: PathConfig = BUILT_IN
) -> PathConfig:
    pool, groups = stage.scenario.pool, GroupsConfig()
    if pool is not None:
        parts = tuple(_group(part, pool.budget_bytes, isolated="isolated" in words) for part in pool.parts)
        groups = GroupsConfig(pools=(PoolConfig(name="card", budget_bytes=pool.budget_bytes, groups=parts),))
    found = replace(configured, replicas=tuple(map(replica_config, replicas)), groups=groups)
    if "learned" in words:
        found = replace(found, slots=replace(found.slots, mode="learned"))
    if "slo" in words:
        found = replace(found, classes=_with_objectives(stage.scenario, found.classes))
    if "shares" in words:
        found = replace(found, tenants=_weighed(stage.scenario.shares))
    if "ladder" in words:
        lighter = stage.scenario.light_models.items()
        ladders = {model: replace(found.ladder, light_model=light) for model, light in lighter}
        found = replace(found, models=replace(found.models, ladders=ladders))
    if "no-affinity" in words:
        found = replace(found, balance=replace(found.balance, prefix_affinity=False))
    return found


def _weighed(shares: dict[str, float]) -> TenantsConfig:
    """Weights of mean 1."""
    mean = sum(shares.values()) / max(1, len(shares))
    return TenantsConfig(named={name: TenantConfig(weight=part / mean) for name, part in shares.items()})


def _with_objectives(scenario: Scenario, classes: ClassesConfig) -> ClassesConfig:
    """The scenario's objective for classes by length, and its own for each class that clients name."""
    known = classes.classes
    named = {
        demand.class_hint: demand.ttft_slo_s
        for demand in scenario.demands
        if demand.class_hint is not None and demand.ttft_slo_s is not None
    }
    by_length_s = named.pop(INTERACTIVE, scenario.slo.ttft_s)
    tpot_slo_s = scenario.slo.tpot_s
    held = {name: replace(known[name], ttft_slo_s=by_length_s, tpot_slo_s=tpot_slo_s) for name in (INTERACTIVE, LONG)}
    for name, ttft_slo_s in named.items():
        config = known.get(name, RELAXED if ttft_slo_s > by_length_s else ClassConfig())
        wait_s = max(config.max_wait_s, ttft_slo_s)
        held[name] = replace(config, ttft_slo_s=ttft_slo_s, tpot_slo_s=tpot_slo_s, max_wait_s=wait_s)
    # Clients that name their classes are not sorted by length beside.
    threshold = sys.maxsize if named else classes.long_threshold_tokens
    return replace(classes, long_threshold_tokens=threshold, classes={**known, **held})


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
