"""Takes a new configuration into running state, object by object, and says what moved.

Nothing running is dropped: a removed replica gets no more requests and its permits settle in its own
ledger; a removed class empties into ``interactive``.
"""

from __future__ import annotations

from dataclasses import fields

from tidegate.policy.change import Drain
from tidegate.policy.path_config import PathConfig
from tidegate.policy.reading import Capacity, ReplicaConfig
from tidegate.policy.replica import Replica
from tidegate.policy.upstream import Upstream


def reshape(
    upstreams: dict[str, Upstream], leaving: list[Replica], old: PathConfig, new: PathConfig, now: float
) -> list[str]:
    """Bring ``upstreams`` to ``new``. Returns a line per change.

    ``leaving`` holds removed replicas while they have permits: one that comes back meanwhile comes
    back with its load. An upstream that lost its last replica stays while somebody waits in it;
    ``Path.advance`` refuses them.
    """
    here = [replica for upstream in upstreams.values() for replica in upstream.replicas]
    known = {(each.config.upstream, each.name): each for each in [*leaving, *here]}
    for upstream in upstreams.values():
        upstream.replicas = []
        upstream.reconfigure(new, now)
    for config in new.replicas:
        if config.upstream not in upstreams:
            upstreams[config.upstream] = Upstream(config.upstream, new)
        upstream = upstreams[config.upstream]
        upstream.replicas.append(_replica(known.pop((config.upstream, config.name), None), config, old, new, now))
    leaving[:] = [replica for replica in known.values() if replica.permits]
    for upstream in [*upstreams.values()]:
        upstream.survey()
        upstream.adopt(new)
        if not upstream.replicas and not upstream.queue.requests:
            del upstreams[upstream.name]
    return _changes(old, new)


def drain(upstreams: dict[str, Upstream], change: Drain) -> list[str]:
    """Take a replica out of, or back into, placement. Returns a line if that changed anything."""
    lines = []
    for upstream in upstreams.values():
        for replica in upstream.replicas:
            if replica.name == change.replica and replica.draining is not change.on:
                replica.draining, upstream.moved = change.on, True
                lines.append(f"replica {replica.name}: draining {not change.on} -> {change.on}")
    return lines


def _replica(known: Replica | None, config: ReplicaConfig, old: PathConfig, new: PathConfig, now: float) -> Replica:
    held = config if new.slots.enabled else _without_pool(config)
    if known is not None:
        known.reconfigure(held, new.limit, new.prefill, new.breaker, new.balance.slow_start_s, now)
        return known
    made = Replica(held, new.limit, new.prefill, new.breaker, new.balance.slow_start_s)
    if old.replicas:
        made.start_slowly(now)
    return made


def _without_pool(config: ReplicaConfig) -> ReplicaConfig:
    capacity = Capacity(sequences=config.capacity.sequences, context_tokens=config.capacity.context_tokens)
    return ReplicaConfig(
        name=config.name,
        upstream=config.upstream,
        capacity=capacity,
        abort_grace_s=config.abort_grace_s,
        confirms_aborts=config.confirms_aborts,
        domain=config.domain,
    )


def _changes(old: PathConfig, new: PathConfig) -> list[str]:
    before = {replica.name: replica for replica in old.replicas}
    after = {replica.name: replica for replica in new.replicas}
    lines = [f"replica {name}: added to {after[name].upstream}" for name in after if name not in before]
    lines += [f"replica {name}: removed, drains" for name in before if name not in after]
    lines += [f"replica {name}: changed" for name in after if name in before and before[name] != after[name]]
    for section in fields(PathConfig):
        was, is_now = getattr(old, section.name), getattr(new, section.name)
        if section.name == "replicas" or was == is_now:
            continue
        lines += [
            f"{section.name}.{each.name}: {getattr(was, each.name)} -> {getattr(is_now, each.name)}"
            for each in fields(was)
            if getattr(was, each.name) != getattr(is_now, each.name)
        ]
    return lines
