"""What can be seen of marks: how many, which, on whom as it may be shown, and whether there is a panic."""

from __future__ import annotations

from prometheus_client.metrics_core import Metric

from tests.policy.machine import Events, replica_config
from tidegate.lens.mark_gauges import mark_gauges
from tidegate.policy.change import LiftMark, SetMark
from tidegate.policy.marks import MarkKind, MarksConfig
from tidegate.policy.path import Path
from tidegate.policy.path_config import PathConfig
from tidegate.policy.shown_keys import ShowSource

CONFIG = PathConfig(
    replicas=(replica_config("a1"), replica_config("a2")), marks=MarksConfig(show_source=ShowSource.PREFIX)
)


def shown(metrics: list[Metric]) -> dict[tuple[str, ...], float]:
    return {(sample.name, *sample.labels.values()): sample.value for metric in metrics for sample in metric.samples}


def test_marks_are_shown_by_kind_and_the_latest_by_key_as_it_may_be_shown() -> None:
    events = Events(Path(CONFIG, 0.0))
    for key in ("10.0.0.1", "10.0.0.2"):
        events.path.apply(SetMark(MarkKind.SOURCE, key, 60.0, "scraper", "ticket 7"), 0.0)
    events.path.apply(SetMark(MarkKind.REPLICA, "a1", 60.0, "maintenance", "ticket 8"), 0.0)
    events.path.apply(SetMark(MarkKind.USER, "u", 60.0, "abuse", "ticket 9"), 0.0)
    events.path.apply(LiftMark(MarkKind.USER, "u"), 0.0)
    found = shown(list(mark_gauges(events.path.view(10.0))))
    assert found["tidegate_marks", "source"] == 2
    assert found["tidegate_marks", "session"] == 0
    assert found["tidegate_marks_set_total", "source", "operator"] == 2
    assert found["tidegate_marks_set_total", "replica", "outlier"] == 0
    assert found["tidegate_marks_ended_total", "user", "operator"] == 1
    assert found["tidegate_mark_remaining_seconds", "source", "10.0.0.0/24", "operator"] == 50
    assert found["tidegate_mark_remaining_seconds", "replica", "a1", "operator"] == 50
    assert (found["tidegate_replica_marked", "a1"], found["tidegate_replica_marked", "a2"]) == (1, 0)
    assert found["tidegate_panic", "a"] == 0
    assert found["tidegate_notices_lost_total",] == 0


def test_a_view_without_them_shows_nothing() -> None:
    assert shown(list(mark_gauges({}))) == {}
    assert shown(list(mark_gauges({"replicas": {"a1": {}}, "panics": None}))) == {}
