"""What can be seen of bursts, classes and quotas."""

from __future__ import annotations

from dataclasses import replace

from prometheus_client.metrics_core import Metric

from tests.policy.machine import Events, replica_config
from tidegate.lens.shaping_gauges import shaping_gauges
from tidegate.policy.path import Path
from tidegate.policy.path_config import PathConfig

ONE = PathConfig(replicas=(replica_config("a1", sequences=2),))


def shown(metrics: list[Metric]) -> dict[tuple[str, ...], float]:
    return {(sample.name, *sample.labels.values()): sample.value for metric in metrics for sample in metric.samples}


def test_a_burst_the_classes_in_the_queue_and_on_replicas_and_the_quotas_are_shown() -> None:
    events = Events(Path(ONE, 0.0))
    events.offer(max_tokens=10, prompt_tokens=100, class_hint="batch")
    for _ in range(11):
        events.offer(max_tokens=10, prompt_tokens=100)
    events.offer(max_tokens=10, prompt_tokens=2000)
    found = shown(list(shaping_gauges(events.path.view(0.0))))
    assert found["tidegate_burst", "a"] == 1
    assert found["tidegate_bursts_total", "a"] == 1
    assert found["tidegate_burst_usual_per_s", "a"] == 0
    assert found["tidegate_class_queue_requests", "a", "interactive"] == 10
    assert found["tidegate_class_queue_requests", "a", "long"] == 1
    assert found["tidegate_class_sequences", "a1", "batch"] == 1
    assert found["tidegate_class_slots", "a1", "batch"] == 1
    assert found["tidegate_quota_open_tokens",] == 12 * 110 + 2010
    events.finish()
    found = shown(list(shaping_gauges(events.path.view(events.now))))
    assert found["tidegate_burst", "a"] == 0
    assert found["tidegate_quota_open_tokens",] == 0
    assert found["tidegate_quota_settled_tokens_total",] + found["tidegate_quota_refunded_tokens_total",] == 3330


def test_a_view_without_them_shows_nothing() -> None:
    assert shown(list(shaping_gauges({}))) == {}
    assert shown(list(shaping_gauges({"replicas": {"a1": {}}, "queues": {"a": {}}, "quota": None}))) == {}


def test_every_class_is_shown_that_a_reload_brings() -> None:
    events = Events(Path(ONE, 0.0))
    classes = replace(ONE.classes, classes={**ONE.classes.classes, "vip": ONE.classes.classes["interactive"]})
    events.apply(replace(ONE, classes=classes))
    found = shown(list(shaping_gauges(events.path.view(0.0))))
    assert found["tidegate_class_queue_requests", "a", "vip"] == 0
