"""Which upstreams draw on which pool, and in which order they are looked at.

Without pools every upstream is for itself. With them, what one gives back another may take, so each
``Path.advance`` looks at the upstreams that wait as long as one of them lets another go: those that
use least of their floor first, which under the floor is their right and above it makes loans even.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tidegate.policy.groups import Group, GroupsConfig, Pool
from tidegate.policy.replica import Replica
from tidegate.policy.request import NEVER
from tidegate.policy.upstream import Upstream


class Sharing:
    __slots__ = ("_claims", "_members", "pools")

    def __init__(self, config: GroupsConfig, now: float) -> None:
        self.pools = [Pool(each, now) for each in config.pools]
        self._members: dict[str, list[Group]] = {}
        """By upstream: the groups of its replicas."""
        self._claims: dict[str, list[Group]] = {}
        """By upstream: the groups under whose floor it waits for memory."""

    def bind(self, upstreams: Mapping[str, Upstream], leaving: list[Replica]) -> None:
        """Put every replica into its group, with what its permits hold."""
        groups = {group.name: group for pool in self.pools for group in pool.groups}
        for upstream in upstreams.values():
            joined = [_join(replica, groups) for replica in upstream.replicas]
            self._members[upstream.name] = [*dict.fromkeys([group for group in joined if group is not None])]
            upstream.survey()
        for replica in leaving:
            _join(replica, groups)

    @property
    def is_owed(self) -> bool:
        """Some upstream is thought to wait for memory under its floor."""
        return bool(self._claims)

    def turns(self, upstreams: Mapping[str, Upstream], now: float) -> Iterator[Upstream]:
        """Every upstream once, and again those for whom a later one made room."""
        for pool in self.pools:
            pool.pass_to(now)
        due = [*upstreams.values()]
        while due:
            self._stir(upstreams)
            for upstream in sorted(due, key=self._fill):
                # Where somebody waited for memory, it is asked anew whether that is still so.
                upstream.moved = upstream.moved or upstream.name in self._claims
                upstream.claims = []
                yield upstream
                self._note_claims(upstream)
                upstream.wakes_at = self._wakes_at(upstream)
            self._stir(upstreams)
            due = [each for each in upstreams.values() if each.moved and each.queue.requests]

    def _stir(self, upstreams: Mapping[str, Upstream]) -> None:
        """Let everybody look again whose pool has changed."""
        stirred = [pool for pool in self.pools if pool.is_stirred]
        for pool in stirred:
            pool.is_stirred = False
        for name, groups in self._members.items():
            if name in upstreams and any(group.pool in stirred for group in groups):
                upstreams[name].moved = True

    def _fill(self, upstream: Upstream) -> float:
        fills = [group.used_bytes / max(1, group.floor_bytes) for group in self._members.get(upstream.name, ())]
        return min(fills, default=0.0)

    def _note_claims(self, upstream: Upstream) -> None:
        before, claimed = self._claims.pop(upstream.name, []), [*dict.fromkeys(upstream.claims)]
        for group in before:
            group.claims -= 1
            if group not in claimed:
                group.pool.is_stirred = True
        for group in claimed:
            group.claims += 1
        if claimed:
            self._claims[upstream.name] = claimed

    def _wakes_at(self, upstream: Upstream) -> float:
        ticks = [group.pool.wakes_at() for group in self._members.get(upstream.name, ())]
        return min((tick for tick in ticks if tick is not None), default=NEVER)

    def view(self) -> dict[str, object]:
        return {
            "pools": {pool.name: pool.view() for pool in self.pools},
            "groups": {group.name: group.view() for pool in self.pools for group in pool.groups},
        }


def share(
    known: Sharing | None, config: GroupsConfig, upstreams: Mapping[str, Upstream], leaving: list[Replica], now: float
) -> Sharing | None:
    """The sharing of a new configuration, with the peaks of ``known``; None where there are no pools."""
    if known is None and not config.pools:
        return None
    sharing = Sharing(config, now)
    sharing.bind(upstreams, leaving)
    peaks = {} if known is None else {group.name: group.peak_bytes for pool in known.pools for group in pool.groups}
    for pool in sharing.pools:
        for group in pool.groups:
            group.peak_bytes = max(group.peak_bytes, peaks.get(group.name, 0))
    if config.pools:
        return sharing
    for upstream in upstreams.values():
        upstream.wakes_at, upstream.claims = NEVER, []
    return None


def _join(replica: Replica, groups: Mapping[str, Group]) -> Group | None:
    group = replica.group = None if replica.config.group is None else groups.get(replica.config.group)
    if group is not None:
        slot_bytes = replica.slot_bytes
        for permit in replica.permits.values():
            permit.pool_bytes = permit.pool_bytes or permit.slots * slot_bytes
            group.take(permit.pool_bytes)
        group.note_foreign(replica.slots.foreign * slot_bytes)
    return group
