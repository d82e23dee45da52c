"""Gauges of bursts, classes and quotas, from ``Path.view``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric

BURST_ON = ("tidegate_burst", "1 while more requests arrive than usual by far, else 0.")
BURST_USUAL = ("tidegate_burst_usual_per_s", "Usual arrivals a second, against which bursts are seen.")
BURSTS = ("tidegate_bursts", "Bursts seen.")
CLASS_QUEUE = ("tidegate_class_queue_requests", "Requests of one class in our queue (SPEC S0-38).")
CLASS_HELD = {
    "sequences": ("tidegate_class_sequences", "Sequences in flight of a class that has a share or a floor."),
    "slots": ("tidegate_class_slots", "KV slots held by a class that has a share or a floor."),
}
QUOTA_OPEN = ("tidegate_quota_open_tokens", "Tokens charged to tenants that are not settled yet.")
QUOTA_SUMS = {
    "settled_tokens": ("tidegate_quota_settled_tokens", "Tokens that tenants have used."),
    "refunded_tokens": ("tidegate_quota_refunded_tokens", "Tokens that were charged and given back."),
}


def shaping_gauges(view: Mapping[str, Any]) -> Iterator[Metric]:
    """What the view lacks is left out, never shown as 0."""
    yield from _bursts(_named(view, "bursts"))
    yield _by_class(CLASS_QUEUE, "upstream", _named(view, "queues"), "requests")
    for field, described in CLASS_HELD.items():
        yield _by_class(described, "replica", _named(view, "replicas"), field)
    quota = _named(view, "quota")
    if quota:
        yield GaugeMetricFamily(*QUOTA_OPEN, value=float(quota["open_tokens"]))
        for field, described in QUOTA_SUMS.items():
            yield CounterMetricFamily(*described, value=float(quota[field]))


def _bursts(bursts: Mapping[str, Any]) -> Iterator[Metric]:
    is_on = GaugeMetricFamily(*BURST_ON, labels=("upstream",))
    usual = GaugeMetricFamily(*BURST_USUAL, labels=("upstream",))
    seen = CounterMetricFamily(*BURSTS, labels=("upstream",))
    for name, burst in bursts.items():
        is_on.add_metric((name,), float(burst["is_on"]))
        usual.add_metric((name,), burst["usual_per_s"])
        seen.add_metric((name,), burst["bursts"])
    yield from (is_on, usual, seen)


def _by_class(described: tuple[str, str], label: str, things: Mapping[str, Any], field: str) -> Metric:
    family = GaugeMetricFamily(*described, labels=(label, "class"))
    for name, thing in things.items():
        for service_class, held in _named(thing, "classes").items():
            family.add_metric((name, service_class), float(held[field]))
    return family


def _named(view: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = view.get(key)
    return found if isinstance(found, Mapping) else {}
