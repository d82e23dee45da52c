"""The state of the policies in figures: for gauges and ``explain``, and to keep over a restart."""

from __future__ import annotations

from collections.abc import Mapping

from tidegate.policy.margin import Margin
from tidegate.policy.marks import Marks
from tidegate.policy.upstream import Upstream


def view(upstreams: Mapping[str, Upstream], now: float) -> dict[str, object]:
    """Queues and replicas, by name."""
    return {
        "queues": {name: upstream.queue.view() for name, upstream in upstreams.items()},
        "replicas": {replica.name: replica.view() for each in upstreams.values() for replica in each.replicas},
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
        "replicas": {replica.name: replica.dump() for each in upstreams.values() for replica in each.replicas},
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
                replica.restore(replicas[replica.name])
