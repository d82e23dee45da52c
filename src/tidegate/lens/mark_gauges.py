"""Gauges of marks and panics, from ``Path.view``.

A mark's key comes from a client, and labels otherwise never do (``exposition``). Here it is what somebody looks for, so
the latest marks have a series each: at most 50 (``Marks.view``), keys shown as ``marks.show_source`` and ``marks.mask``
say (SPEC S0-52).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from tidegate.policy.marks import HIGH_RISK, NO_PROGRESS, OUTLIER, OVER_LENGTH, MarkKind

MARKS = ("tidegate_marks", "Negative marks in force, by what they are on.")
SET = ("tidegate_marks_set", "Marks that were set; reason operator: by the admin API.")
ENDED = ("tidegate_marks_ended", "Marks that ended: run out, lifted or displaced.")
REMAINING = ("tidegate_mark_remaining_seconds", "Until the mark ends; the latest 50 marks, keys as they may be shown.")
MARKED = ("tidegate_replica_marked", "1 while a mark keeps requests from the replica.")
PANIC = ("tidegate_panic", "1 while so few replicas are usable that breakers and marks do not count for the rest.")
NOTICES_LOST = ("tidegate_notices_lost", "Log lines of policies that were dropped because too many came at once.")

BY_THEMSELVES = (
    (MarkKind.SESSION.value, HIGH_RISK),
    (MarkKind.USER.value, HIGH_RISK),
    (MarkKind.SOURCE.value, OVER_LENGTH),
    (MarkKind.REPLICA.value, OUTLIER),
    (MarkKind.REPLICA.value, NO_PROGRESS),
)


def mark_gauges(view: Mapping[str, Any]) -> Iterator[Metric]:
    """What the view lacks is left out, never shown as 0."""
    marks = GaugeMetricFamily(*MARKS, labels=("kind",))
    for kind, count in _named(view, "mark_kinds").items():
        marks.add_metric((kind,), float(count))
    yield marks
    for described, name in ((SET, "marks_set"), (ENDED, "marks_ended")):
        counted = CounterMetricFamily(*described, labels=("kind", "reason"))
        for (kind, reason), count in _counts(view, name).items():
            counted.add_metric((kind, reason), float(count))
        yield counted
    remaining = GaugeMetricFamily(*REMAINING, labels=("kind", "key", "reason"))
    for mark in _shown(view):
        remaining.add_metric((mark["kind"], mark["key"], mark["reason"]), mark["remaining_s"])
    yield remaining
    replicas = _named(view, "replicas")
    yield _switch(MARKED, "replica", {name: each["marked"] for name, each in replicas.items() if "marked" in each})
    yield _switch(PANIC, "upstream", _named(view, "panics"))
    if "notices_lost" in view:
        yield CounterMetricFamily(*NOTICES_LOST, value=float(view["notices_lost"]))


def _counts(view: Mapping[str, Any], name: str) -> dict[tuple[str, str], int]:
    """From the start, at 0, what policies mark by themselves: the rate of a series that appears at 1 misses that."""
    if name not in view:
        return {}
    counts = dict.fromkeys(BY_THEMSELVES, 0)
    for kind, reasons in _named(view, name).items():
        counts |= {(kind, reason): count for reason, count in reasons.items()}
    return counts


def _shown(view: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """One for each label set: two keys may look the same when they are shown as networks."""
    shown: dict[tuple[str, str, str], Mapping[str, Any]] = {}
    for mark in view.get("marks_shown", []):
        shown.setdefault((mark["kind"], mark["key"], mark["reason"]), mark)
    return [*shown.values()]


def _switch(described: tuple[str, str], label: str, states: Mapping[str, Any]) -> Metric:
    family = GaugeMetricFamily(*described, labels=(label,))
    for name, is_on in states.items():
        family.add_metric((name,), float(is_on))
    return family


def _named(view: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = view.get(key)
    return found if isinstance(found, Mapping) else {}
