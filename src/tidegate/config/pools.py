"""Section ``pools``: KV memory that engines of several models draw on (SPEC S0-69, C15)."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from tidegate.config.quantity import SIZE_TEXT
from tidegate.config.section import Section
from tidegate.policy.groups import PEAK_S, GroupConfig, GroupsConfig, PoolConfig
from tidegate.policy.groups import Pool as Ledger

Name = Annotated[str, Field(min_length=1, max_length=64)]
Share = Annotated[float, Field(ge=0, le=1)]


class Group(Section):
    """One model's part of a pool."""

    members: Annotated[tuple[Name, ...], Field(min_length=1)]
    """Upstreams, with all their replicas, or single replicas by name; each needs ``bytes_per_token``."""
    floor: Share
    """Share of the pool that is guaranteed: what others have borrowed of it comes back as their requests end."""
    cap: Share = 1.0
    """Most that it may hold, loans included; equal to ``floor`` it is isolated (SPEC S0-75)."""
    reserve: Share = 0.1
    """Share of its idle floor that is never lent: room for the first requests of a burst."""


class Pool(Section):
    """A quota ledger, not memory: engines keep their own pools, and it holds their sum within the budget."""

    kv_bytes: Annotated[int, Field(ge=1), *SIZE_TEXT]
    """KV memory that all its groups may hold together."""
    peak_s: Annotated[float, Field(gt=0)] = PEAK_S
    """How fast a group's past peak, which is not lent either, fades: to 37 % in this time."""
    groups: Annotated[dict[Name, Group], Field(min_length=1)]
    """By a name of your choice."""

    def policy(self, name: str) -> PoolConfig:
        groups = tuple(self._group(f"{name}/{key}", group) for key, group in self.groups.items())
        return PoolConfig(name=name, budget_bytes=self.kv_bytes, groups=groups, peak_s=self.peak_s)

    def _group(self, name: str, group: Group) -> GroupConfig:
        floor_bytes = int(group.floor * self.kv_bytes)
        return GroupConfig(
            name=name,
            floor_bytes=floor_bytes,
            cap_bytes=max(floor_bytes, int(group.cap * self.kv_bytes)),
            reserve_bytes=int(group.reserve * floor_bytes),
        )


Pools = dict[Name, Pool]


def groups_config(pools: Pools) -> GroupsConfig:
    """What the policies take. A group is called ``pool/group`` there."""
    return GroupsConfig(pools=tuple(pool.policy(name) for name, pool in pools.items()))


def requests_of(pools: Pools, group: str, request_bytes: int) -> tuple[int, int]:
    """How many requests of one size a group may hold: by its floor alone, and while all others are idle."""
    found = {each.name: each for config in groups_config(pools).pools for each in Ledger(config, 0.0).groups}[group]
    return found.floor_bytes // request_bytes, found.most_bytes // request_bytes


def group_of(pools: Pools, upstream: str, replica: str) -> str | None:
    """The group of a replica, if it has one; its own name goes before its upstream's."""
    for member in (replica, upstream):
        for name, pool in pools.items():
            for key, group in pool.groups.items():
                if member in group.members:
                    return f"{name}/{key}"
    return None
