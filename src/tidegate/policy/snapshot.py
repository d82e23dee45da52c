"""The state of the policies in figures: for gauges and ``explain``, and to keep over a restart."""

from __future__ import annotations

from collections.abc import Mapping

from tidegate.policy.limits.prefill import FEW_SAMPLES
from tidegate.policy.margin import Margin
from tidegate.policy.marks import MarkKind, Marks
from tidegate.policy.replica import Replica
from tidegate.policy.upstream import Upstream


def view(upstreams: Mapping[str, Upstream], now: float) -> dict[str, object]:
    """Queues and replicas, by name."""
    return {
        "queues": {name: upstream.queue.view() for name, upstream in upstreams.items()},
        "replicas": {replica.name: view_of(replica) for each in upstreams.values() for replica in each.replicas},
        "bursts": {name: upstream.burst.view(now) for name, upstream in upstreams.items()},
        "lengths": {
            name: each.expectation.view() for name, each in upstreams.items() if each.expectation.config.learns
        },
    }


def dump(upstreams: Mapping[str, Upstream], marks: Marks, margin: Margin, now: float) -> dict[str, object]:
    """Learned estimates and marks, as remaining times, so that another clock can take them."""
    return {
        "marks": marks.dump(now),
        "margin": margin.value,
        "replicas": {replica.name: _dump_of(replica) for each in upstreams.values() for replica in each.replicas},
        "lengths": {name: each.expectation.dump() for name, each in upstreams.items()},
    }


def restore(
    state: Mapping[str, object], upstreams: Mapping[str, Upstream], marks: Marks, margin: Margin, now: float
) -> None:
    """Take what ``dump`` gave; a replica that is unknown now is left out.

    Raises:
        ValueError: ``state`` has another form.
    """
    try:
        _restore(state, upstreams, marks, margin, now)
    except (KeyError, TypeError, IndexError, AttributeError) as error:
        raise ValueError(f"this is not what Path.dump returns: {error!r}") from error


def _restore(
    state: Mapping[str, object], upstreams: Mapping[str, Upstream], marks: Marks, margin: Margin, now: float
) -> None:
    rows, value, replicas = state.get("marks"), state.get("margin"), state.get("replicas")
    lengths = state.get("lengths", {})
    if not (
        isinstance(rows, list)
        and isinstance(value, float)
        and isinstance(replicas, dict)
        and isinstance(lengths, Mapping)
    ):
        raise ValueError("this is not what Path.dump returns")
    marks.restore(rows, now)
    margin.value = value
    margin.reconfigure(margin.config)
    for name, upstream in upstreams.items():
        if name in lengths:
            upstream.expectation.restore(lengths[name])
        for replica in upstream.replicas:
            if replica.name in replicas:
                _restore_into(replica, replicas[replica.name])
            mark = marks.find(MarkKind.REPLICA, replica.name, now)
            if mark is not None:
                replica.set_aside(mark.until, is_banned=mark.is_by_order)


def view_of(replica: Replica) -> dict[str, object]:
    """One replica in figures."""
    reading = replica.reading
    return {
        "upstream": replica.config.upstream,
        "ready": replica.ready,
        "draining": replica.draining,
        "error": reading.error if reading is not None else "",
        "in_flight": replica.in_flight,
        "aborting": len(replica.aborting),
        "foreign_sequences": replica.foreign_sequences,
        "sequences": replica.config.capacity.sequences,
        "pending_prefill_tokens": replica.pending_tokens,
        "prefill_bound_tokens": replica.bound_tokens,
        "limit": replica.limit.value,
        "breaker": replica.breaker.state.value,
        "marked": replica.marked_until > 0.0,
        "slots": replica.slots.view(),
        "kv_used_tokens": reading.kv_used_tokens if reading is not None else None,
        "group": replica.config.group,
        "classes": replica.shares.view(),
        "token_s": replica.token_s,
        "cache_trust": replica.cache.trust,
    }


def _dump_of(replica: Replica) -> dict[str, list[float]]:
    return {
        "limit": [replica.limit.value],
        "first_token": replica.first_token.dump(),
        "whole": replica.whole.dump(),
    }


def _restore_into(replica: Replica, state: Mapping[str, list[float]]) -> None:
    replica.limit.value = float(state["limit"][0])
    replica.limit.reconfigure(replica.limit.config)
    replica.first_token.restore(state["first_token"])
    replica.whole.restore(state["whole"])
    replica.token_s = replica.first_token.per_unit_s if replica.first_token.samples >= FEW_SAMPLES else 0.0
    replica.bind()
