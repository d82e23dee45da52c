"""``tidegate explain``: the pools that several models share, and whether lending can do anything in them."""

from __future__ import annotations

from typing import Any

from tidegate.config import Settings, slot_plans
from tidegate.config.pools import group_of, groups_config
from tidegate.config.slot_plan import SlotPlan
from tidegate.policy.groups import GroupConfig, PoolConfig

FIELDS = {
    "pools[]": "budgets of KV memory that several models share: pool, budget_bytes, guaranteed_bytes, groups",
    "pools[].groups[]": "group, floor_bytes, cap_bytes, reserve_bytes (never lent), replicas, and own_pool_bytes, what "
    "the engines themselves hold at most (null: not known yet); if that is no more than the floor, loans are of no use",
}

GIB = 2**30


def pools_plain(settings: Settings) -> list[dict[str, Any]]:
    """As JSON."""
    return [_plain(pool, settings) for pool in groups_config(settings.pools).pools]


def pool_lines(settings: Settings) -> list[str]:
    """A line per pool and per group."""
    lines = []
    for pool in pools_plain(settings):
        budget, guaranteed = pool["budget_bytes"] / GIB, pool["guaranteed_bytes"] / GIB
        lines.append(f"{pool['pool']}: {budget:.1f} GiB, of which {guaranteed:.1f} GiB guaranteed")
        lines += [_line(group) for group in pool["groups"]]
    return lines


def _line(group: dict[str, Any]) -> str:
    own, floor = group["own_pool_bytes"], group["floor_bytes"]
    engines = "not known yet" if own is None else f"{own / GIB:.1f} GiB"
    useless = own is not None and group["cap_bytes"] > floor >= own
    return (
        f"{group['group']} ({', '.join(group['replicas'])}): guaranteed {floor / GIB:.1f} GiB, "
        f"at most {group['cap_bytes'] / GIB:.1f} GiB, never lent {group['reserve_bytes'] / GIB:.1f} GiB; "
        f"its engines' own memory: {engines}{', so a loan is of no use to it' if useless else ''}"
    )


def _plain(pool: PoolConfig, settings: Settings) -> dict[str, Any]:
    return {
        "pool": pool.name,
        "budget_bytes": pool.budget_bytes,
        "guaranteed_bytes": sum(group.floor_bytes for group in pool.groups),
        "groups": [_group_plain(group, settings) for group in pool.groups],
    }


def _group_plain(group: GroupConfig, settings: Settings) -> dict[str, Any]:
    plans = [
        plan for plan in slot_plans(settings) if group_of(settings.pools, plan.upstream, plan.replica) == group.name
    ]
    return {
        "group": group.name,
        "floor_bytes": group.floor_bytes,
        "cap_bytes": group.cap_bytes,
        "reserve_bytes": group.reserve_bytes,
        "replicas": [plan.replica for plan in plans],
        "own_pool_bytes": _own_bytes(plans),
    }


def _own_bytes(plans: list[SlotPlan]) -> int | None:
    known = [
        plan.pool_tokens * plan.bytes_per_token
        for plan in plans
        if plan.pool_tokens is not None and plan.bytes_per_token is not None
    ]
    return sum(known) if len(known) == len(plans) else None
