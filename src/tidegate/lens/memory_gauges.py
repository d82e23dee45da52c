"""KV memory in figures: three metrics in place of one "fragmentation" (SPEC C19), and pools that models share.

``ledger`` in a definition: from what our own permits hold, at this moment. ``reading``: from what the
engine said last, perhaps a second ago.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric

GROUP_GAUGES = (
    ("tidegate_group_held_bytes", "KV memory that the group's permits hold (ledger).", "held_bytes"),
    ("tidegate_group_foreign_bytes", "KV memory of load on its engines that is not ours (reading).", "foreign_bytes"),
    ("tidegate_group_floor_bytes", "KV memory that the group is guaranteed.", "floor_bytes"),
    ("tidegate_group_borrowed_bytes", "KV memory that the group uses above its floor (ledger).", "borrowed_bytes"),
    ("tidegate_group_kept_bytes", "KV memory that the others must leave to it: use, peak, reserve.", "kept_bytes"),
    ("tidegate_group_waits", "1 while it has work that fits under its floor and no memory for it.", "waits"),
)

POOL_GAUGES = (
    ("tidegate_shared_pool_budget_bytes", "KV memory that the groups of the pool share.", "budget_bytes"),
    ("tidegate_shared_pool_used_bytes", "KV memory that its groups use together (ledger).", "used_bytes"),
    ("tidegate_shared_pool_lent_bytes", "Of guaranteed KV memory, what other groups use (ledger).", "lent_bytes"),
)


def memory_gauges(view: Mapping[str, Any]) -> Iterator[Metric]:
    """A figure that cannot be told (an unknown pool, an engine that says nothing) is left out."""
    replicas = view.get("replicas", {})
    yield _of_replicas(
        "tidegate_pool_pressure_ratio",
        "Share of the replica's slots that are not free: reserved, used or foreign (ledger).",
        {name: _pressure(replica["slots"]) for name, replica in replicas.items()},
    )
    yield _of_replicas(
        "tidegate_pool_external_fragmentation_ratio",
        "1 - largest free block / free. 0 by construction: slots and blocks are alike, any free one serves (ledger).",
        {name: 0.0 if replica["slots"].get("total") else None for name, replica in replicas.items()},
    )
    yield _of_replicas(
        "tidegate_pool_internal_waste_ratio",
        "1 - KV tokens in use / tokens of slots that are not free: rounding, and what is reserved for output that has "
        "not been written (ledger and reading); missing where nothing is held or the engine does not tell.",
        {name: _waste(replica) for name, replica in replicas.items()},
    )
    groups, pools = view.get("groups", {}), view.get("pools", {})
    for name, definition, key in GROUP_GAUGES if groups else ():
        family = GaugeMetricFamily(name, definition, labels=("pool", "group"))
        for group, figures in groups.items():
            family.add_metric((figures["pool"], group.removeprefix(f"{figures['pool']}/")), float(figures[key]))
        yield family
    for name, definition, key in POOL_GAUGES if pools else ():
        family = GaugeMetricFamily(name, definition, labels=("pool",))
        for pool, figures in pools.items():
            family.add_metric((pool,), float(figures[key]))
        yield family


def _of_replicas(name: str, definition: str, values: Mapping[str, float | None]) -> Metric:
    family = GaugeMetricFamily(name, definition, labels=("replica",))
    for replica, value in values.items():
        if value is not None:
            family.add_metric((replica,), value)
    return family


def _pressure(slots: Mapping[str, Any]) -> float | None:
    total, free = slots.get("total"), slots.get("free")
    return float(total - free) / total if total and free is not None else None


def _waste(replica: Mapping[str, Any]) -> float | None:
    slots, filled = replica["slots"], replica.get("kv_used_tokens")
    given: int = sum(slots.get(state) or 0 for state in ("reserved", "used", "foreign"))
    if filled is None or not given:
        return None
    return max(0.0, 1 - float(filled) / (given * float(slots["slot_tokens"])))
