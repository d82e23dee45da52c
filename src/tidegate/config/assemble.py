"""The one place where configuration becomes what the policies take."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace

from tidegate.config.pools import group_of, groups_config
from tidegate.config.settings import Settings
from tidegate.config.slot_plan import SlotPlan, plan_engine, plan_replica
from tidegate.config.upstreams import Upstream
from tidegate.policy.classes import INTERACTIVE, LONG, ClassConfig, ClassesConfig
from tidegate.policy.ladder import LadderConfig
from tidegate.policy.limits.per_model import ModelConfig, ModelsConfig
from tidegate.policy.margin import MarginConfig
from tidegate.policy.pacing import PacingConfig
from tidegate.policy.path_config import PathConfig
from tidegate.policy.reading import ReplicaConfig
from tidegate.policy.slots import SlotsConfig
from tidegate.policy.tenants import TenantsConfig


def path_config(settings: Settings) -> PathConfig:
    """What ``Path`` is made from and reloaded with.

    Capacities that the file leaves open stay None until an engine tells (``SlotPlan.told``).
    """
    return PathConfig(
        replicas=tuple(replica_configs(settings)),
        slots=SlotsConfig(
            enabled=settings.slots.enabled,
            mode=settings.slots.mode,
            quantile=settings.slots.quantile,
            default_max_tokens=settings.slots.default_max_tokens,
        ),
        groups=groups_config(settings.pools),
        classes=_classes(settings),
        burst=settings.shaping.burst,
        pacing=_pacing(settings),
        giants=replace(settings.shaping.giants, enabled=settings.shaping.enabled and settings.shaping.giants.enabled),
        queue=settings.shaping.queue,
        margin=settings.shaping.margin
        if settings.shaping.enabled
        else MarginConfig(least=1.0, most=1.0, class_share=1.0),
        limit=settings.limits.adaptive,
        prefill=settings.limits.prefill,
        timeouts=replace(settings.tail.timeouts, enabled=settings.tail.enabled and settings.tail.timeouts.enabled),
        breaker=replace(settings.tail.breaker, enabled=settings.tail.enabled and settings.tail.breaker.enabled),
        ejections=settings.tail.ejections,
        outliers=replace(settings.tail.outliers, enabled=settings.tail.enabled and settings.tail.outliers.enabled),
        watchdog=replace(settings.tail.watchdog, enabled=settings.tail.enabled and settings.tail.watchdog.enabled),
        health=settings.tail.health,
        marks=replace(settings.marks, enabled=settings.tail.enabled and settings.marks.enabled),
        balance=settings.balance,
        ladder=settings.ladder,
        retries=settings.retries,
        quota=settings.quota,
        tenants=TenantsConfig(named=settings.tenants),
        models=ModelsConfig(named=_model_limits(settings), ladders=_ladders(settings)),
    )


def _pacing(settings: Settings) -> PacingConfig:
    """Low load below high load also where pacing is off and nobody looked at the two together."""
    shaping = settings.shaping
    low, high = shaping.pacing.low_load_percent, shaping.gpu_utilization_high_percent
    return PacingConfig(
        enabled=shaping.enabled and shaping.pacing.enabled,
        idle_window_s=shaping.pacing.idle_window_s,
        busy_window_s=shaping.pacing.busy_window_s,
        low_load=min(low, high - 1) / 100,
        high_load=high / 100,
    )


def _model_limits(settings: Settings) -> dict[str, ModelConfig]:
    return {name: each.limits for name, each in settings.upstreams.items() if each.limits != ModelConfig()}


def _ladders(settings: Settings) -> dict[str, LadderConfig]:
    own = {name: each.ladder.over(settings.ladder) for name, each in settings.upstreams.items()}
    return {name: each for name, each in own.items() if each != settings.ladder}


def _classes(settings: Settings) -> ClassesConfig:
    if settings.shaping.enabled:
        shaping = settings.shaping
        return ClassesConfig(
            long_threshold_tokens=shaping.long_threshold_tokens,
            long_counts=shaping.long_counts,
            classify=shaping.classify,
            rules=shaping.rules,
            classes=settings.classes,
        )
    alike = ClassConfig(max_wait_s=settings.classes[INTERACTIVE].max_wait_s)
    return ClassesConfig(long_threshold_tokens=sys.maxsize, classes={INTERACTIVE: alike, LONG: alike})


def replica_configs(settings: Settings) -> Iterator[ReplicaConfig]:
    """Every replica of every upstream, with as much of its capacity as is known before it runs."""
    for plan in slot_plans(settings):
        grace_s = plan.abort_grace_s
        group = group_of(settings.pools, plan.upstream, plan.replica)
        known = ReplicaConfig(
            name=plan.replica, upstream=plan.upstream, capacity=plan.capacity(), group=group, domain=plan.domain
        )
        yield known if grace_s is None else replace(known, abort_grace_s=grace_s)


def replica_names(alias: str, upstream: Upstream) -> list[str]:
    """Names of the upstream's replicas in the order of the file, the started engine last."""
    names = [replica.name or f"{alias}-{index}" for index, replica in enumerate(upstream.replicas)]
    return names if upstream.engine is None else [*names, f"{alias}-{upstream.engine.kind}"]


def slot_plans(settings: Settings) -> Iterator[SlotPlan]:
    """One plan for each replica of each upstream."""
    for alias, upstream in settings.upstreams.items():
        names = replica_names(alias, upstream)
        for index, replica in enumerate(upstream.replicas):
            yield plan_replica(replica, names[index], ("upstreams", alias, "replicas", index), settings.slots)
        if upstream.engine is not None:
            yield plan_engine(upstream.engine, names[-1], ("upstreams", alias, "engine"), settings.slots)
