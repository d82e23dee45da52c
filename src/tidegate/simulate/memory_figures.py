"""What a run's watch says about memory: three metrics in place of one "fragmentation" (SPEC C19), and pools."""

from __future__ import annotations

from typing import Any

from tidegate.simulate.watch import Sums, Watch

SCHEMA: dict[str, str] = {
    "memory": "of all engines together, over samples 0.25 s apart while any KV memory is allocated (inside the burst "
    "only, where the scenario has one); null when there was none. external_fragmentation: 1 - largest free block / "
    "free, 0 by construction where memory is paged; internal_waste: 1 - filled / allocated, blocks or regions given "
    "out that hold no token; pool_pressure: allocated / total; reserved_share and reserved_waste: the gateway's "
    "ledger, promised / total and 1 - filled / promised, null without one. largest_free_share and free_share: of the "
    "total. Means weighted by size. policy native:contiguous is the contiguous baseline, no real engine",
    "pool": "null unless several models share one budget of KV memory; shares of the budget in bytes, over the samples "
    "of the burst. filled_share: tokens that are there; reserved_share: promised by the gateway's ledger (slots held "
    "/ slots), null without one; borrowed_share: held above a floor; most_allocated_share: the highest sample of the "
    "whole run, above 1 would be memory that is not there; models: the same of each, with its floor_share "
    "and floor_wait_s, the longest time of the whole run in which it had work that fits under its floor and no memory",
}


def memory(watch: Watch) -> dict[str, float | None] | None:
    if not watch.samples:
        return None
    sums, pool = list(watch.engines.values()), watch.scenario.pool
    allocated, filled = sum(each.allocated for each in sums), sum(each.filled for each in sums)
    free, largest = sum(each.free for each in sums), sum(each.largest_free for each in sums)
    total = sum(each.total for each in sums) if pool is None else pool.budget_bytes * watch.samples
    reserved = _reserved(sums)
    return {
        "external_fragmentation": _less(largest, free),
        "internal_waste": _less(filled, allocated),
        "pool_pressure": _share(allocated, total),
        "free_share": _share(total - allocated, total),
        "largest_free_share": _share(min(largest, total - allocated), total),
        "reserved_share": None if reserved is None else _share(reserved, total),
        "reserved_waste": None if reserved is None else _less(filled, reserved),
    }


def pool(watch: Watch) -> dict[str, Any] | None:
    shared = watch.scenario.pool
    if shared is None or not watch.samples:
        return None
    budget = shared.budget_bytes * watch.samples
    sums, reserved = watch.engines, _reserved(list(watch.engines.values()))
    return {
        "filled_share": _share(sum(each.filled for each in sums.values()), budget),
        "reserved_share": None if reserved is None else _share(reserved, budget),
        "borrowed_share": _share(watch.borrowed_bytes, budget),
        "most_allocated_share": round(watch.most_allocated_bytes / shared.budget_bytes, 4),
        "models": {
            replica.part.model: {
                "floor_share": replica.part.floor_share,
                "filled_share": _share(sums[replica.name].filled, budget),
                "reserved_share": _share(sums[replica.name].reserved, budget) if reserved is not None else None,
                "floor_wait_s": watch.waits[replica.part.model].longest_s
                if replica.part.model in watch.waits
                else None,
            }
            for replica in watch.replicas
            if replica.part is not None
        },
    }


def _reserved(sums: list[Sums]) -> int | None:
    return sum(each.reserved for each in sums) if all(each.has_ledger for each in sums) else None


def _share(part: int, whole: int) -> float:
    return round(part / whole, 4) if whole else 0.0


def _less(part: int, whole: int) -> float:
    """What of ``whole`` is not ``part``; 0 of nothing."""
    return round(1 - part / whole, 4) if whole else 0.0
