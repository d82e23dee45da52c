"""Gauges from ``Path.view``: what is so at this moment, per upstream and per replica."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from tidegate.lens.mark_gauges import mark_gauges
from tidegate.lens.memory_gauges import memory_gauges
from tidegate.lens.repeat_gauges import repeat_gauges
from tidegate.lens.shaping_gauges import shaping_gauges

BREAKER_STATES = ("closed", "half_open", "open")

UPSTREAM_GAUGES = (
    ("tidegate_queue_requests", "Requests in our queue.", "requests"),
    ("tidegate_queue_tokens", "Prompt tokens of the requests in our queue.", "tokens"),
    ("tidegate_queue_bytes", "Body bytes of the requests in our queue.", "bytes"),
    ("tidegate_queue_held_requests", "Of tidegate_queue_requests: giant prompts held for a quiet replica.", "held"),
)

LENGTH_GAUGES = (
    (
        "tidegate_reservation_level_ratio",
        "slots.mode learned: the quantile asked of learned output lengths; moves so that slots.quantile comes out.",
        "level",
    ),
    (
        "tidegate_reservation_caution_ratio",
        "slots.mode learned: 0 reserves as learned, 1 the worst case; rises when an engine preempts, then fades.",
        "caution",
    ),
)
LENGTH_COUNTERS = (
    ("tidegate_reservation_judged", "Streams that ended and had a learned reservation.", "judged"),
    ("tidegate_reservation_covered", "Of these, the ones for which the first reservation was enough.", "covered"),
)

REPLICA_GAUGES: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("tidegate_slots_size_tokens", "Tokens in one slot of the replica.", ("slots", "slot_tokens")),
    ("tidegate_slots_total", "KV slots of the replica; missing while its pool is unknown.", ("slots", "total")),
    ("tidegate_slots_free", "Slots that the next request may reserve.", ("slots", "free")),
    ("tidegate_slots_reserved", "Slots of admitted requests whose first byte has not come.", ("slots", "reserved")),
    ("tidegate_slots_used", "Slots of requests that are being answered.", ("slots", "used")),
    ("tidegate_slots_foreign", "Slots in use by load that did not come through us.", ("slots", "foreign")),
    ("tidegate_limit_value", "Sequences that the adaptive limit lets the replica run for us.", ("limit",)),
    ("tidegate_limit_in_flight", "Sequences in flight on the replica, counted against its limit.", ("in_flight",)),
    ("tidegate_prefill_queued_tokens", "Prompt tokens sent that have no first token yet.", ("pending_prefill_tokens",)),
    ("tidegate_aborts_pending", "Aborted attempts that the engine has not confirmed; they keep slots.", ("aborting",)),
    ("tidegate_replica_ready", "1 when the engine's last reading said that it is ready.", ("ready",)),
)

OVERDRAFTS = ("tidegate_slots_overdrafts", "Attempts whose tokens outgrew their reservation.")


def gauges(view: Mapping[str, Any]) -> Iterator[Metric]:
    """One family per gauge; a figure that the view lacks (an unknown pool) is left out, never shown as 0."""
    queues = _named(view, "queues")
    replicas = _named(view, "replicas")
    for name, definition, field in UPSTREAM_GAUGES:
        yield _filled(GaugeMetricFamily(name, definition, labels=("upstream",)), queues, (field,))
    lengths = _named(view, "lengths")
    for name, definition, field in LENGTH_GAUGES:
        yield _filled(GaugeMetricFamily(name, definition, labels=("upstream",)), lengths, (field,))
    for name, definition, field in LENGTH_COUNTERS:
        yield _filled(CounterMetricFamily(name, definition, labels=("upstream",)), lengths, (field,))
    for name, definition, keys in REPLICA_GAUGES:
        yield _filled(GaugeMetricFamily(name, definition, labels=("replica",)), replicas, keys)
    yield _filled(CounterMetricFamily(*OVERDRAFTS, labels=("replica",)), replicas, ("slots", "overdrafts"))
    yield from memory_gauges(view)
    yield from shaping_gauges(view)
    yield from mark_gauges(view)
    yield from repeat_gauges(view)
    yield _breakers(replicas)
    yield from _of_path(view)


def slot_tokens_of(view: Mapping[str, Any], replica: str) -> float | None:
    """Tokens in one slot of ``replica``; None when the view does not know it."""
    return _number(_named(view, "replicas"), (replica, "slots", "slot_tokens"))


PATH_GAUGES = (
    ("tidegate_requests_open", "Requests offered and not closed yet, waiting ones included.", "open_requests"),
    ("tidegate_permits_open", "Permits that are not settled yet.", "permits"),
    ("tidegate_permits_leaked", "Permits held past every deadline of theirs; anything but 0 is a bug.", "permit_leaks"),
    ("tidegate_retries_allowance", "Retries that may be made now.", "retry_allowance"),
    ("tidegate_queue_margin_ratio", "Share of a deadline that a predicted wait may take before refusal.", "margin"),
)

ABORTS = (
    "tidegate_aborts_unconfirmed",
    "Aborted attempts whose slots were given back because the engine did not confirm in time.",
)


def _of_path(view: Mapping[str, Any]) -> Iterator[Metric]:
    for name, definition, key in PATH_GAUGES:
        value = _number(view, (key,))
        if value is not None:
            yield GaugeMetricFamily(name, definition, value=value)
    unconfirmed = _number(view, ("abort_unconfirmed",))
    if unconfirmed is not None:
        yield CounterMetricFamily(*ABORTS, value=unconfirmed)


def _breakers(replicas: Mapping[str, Any]) -> Metric:
    family = GaugeMetricFamily(
        "tidegate_breaker_state",
        "1 for the state the replica's breaker is in, 0 for the others.",
        labels=("replica", "state"),
    )
    for name, replica in replicas.items():
        for state in BREAKER_STATES:
            family.add_metric((name, state), float(state == replica.get("breaker")))
    return family


def _filled(
    family: GaugeMetricFamily | CounterMetricFamily, things: Mapping[str, Any], keys: tuple[str, ...]
) -> Metric:
    for name, thing in things.items():
        value = _number(thing, keys)
        if value is not None:
            family.add_metric((name,), value)
    return family


def _named(view: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = view.get(key)
    return found if isinstance(found, Mapping) else {}


def _number(thing: Any, keys: tuple[str, ...]) -> float | None:
    for key in keys:
        if not isinstance(thing, Mapping):
            return None
        thing = thing.get(key)
    return float(thing) if isinstance(thing, int | float) else None
