"""What can be wrong with the pools that several models share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tidegate.config.assemble import slot_plans
from tidegate.config.origin import Path
from tidegate.config.problem import Problem, suggestion
from tidegate.config.settings import Settings
from tidegate.config.slot_plan import SlotPlan


def pool_problems(settings: Settings) -> Iterator[Problem]:
    """Pools that promise more than they have, members that do not exist, are taken, or cannot be counted."""
    plans, taken = list(slot_plans(settings)), dict[str, str]()
    for name, pool in settings.pools.items():
        here: Path = ("pools", name)
        if not settings.slots.enabled:
            yield Problem(here, "memory is no gate while slots.enabled is false", also=(("slots", "enabled"),))
        floors = sum(group.floor for group in pool.groups.values())
        if floors > 1 + 1e-9:
            yield Problem((*here, "groups"), f"the floors sum to {floors:g}; a pool can guarantee no more than 1")
        for key, group in pool.groups.items():
            spot: Path = (*here, "groups", key)
            if group.cap < group.floor:
                yield Problem((*spot, "cap"), f"is below the floor ({group.floor:g})", also=((*spot, "floor"),))
            for index, member in enumerate(group.members):
                yield from _member(member, (*spot, "members", index), plans, taken)
                taken.setdefault(member, f"{name}/{key}")


def _member(member: str, here: Path, plans: list[SlotPlan], taken: Mapping[str, str]) -> Iterator[Problem]:
    meant = [plan for plan in plans if member in (plan.upstream, plan.replica)]
    if not meant:
        known = dict.fromkeys(name for plan in plans for name in (plan.upstream, plan.replica))
        yield Problem(here, f"there is no upstream or replica {member!r}{suggestion(member, known)}")
    if member in taken:
        yield Problem(here, f"{member} is in group {taken[member]} already")
    for plan in meant:
        if plan.bytes_per_token is None:
            yield Problem(here, f"{plan.replica} needs bytes_per_token, to tell how much of the pool a request takes")
