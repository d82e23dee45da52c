"""What the counters count: definitions, bounds, closed label sets."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.lens.rows import row, unsent
from tidegate.lens.counted import SeriesData, Snapshot
from tidegate.lens.metrics import INVALID_CODES, OTHER, SECONDS, Histogram, Metrics
from tidegate.lens.row import Row
from tidegate.policy.decisions import Reason
from tidegate.policy.outcomes import Outcome


def counted(*rows: Row) -> SeriesData:
    """The chat/interactive series after ``rows``."""
    return series(snapshot_of(*rows), "chat", "interactive")


def snapshot_of(*rows: Row) -> Snapshot:
    metrics = Metrics(["chat"], ["interactive"], 0.0)
    for each in rows:
        metrics.observe(each)
    return metrics.snapshot({}, 0)


def series(snapshot: Snapshot, upstream: str, service_class: str) -> SeriesData:
    [found] = [each for each in snapshot.series if (each.upstream, each.service_class) == (upstream, service_class)]
    return found


def test_an_answer_counts_once_with_its_tokens_and_times() -> None:
    found = counted(row(longest_gap_s=0.3, attempts=2))
    assert found.requests == [("ok", "", 1)]
    assert (found.prompt_tokens, found.output_tokens, found.retries) == (100, 30, 1)
    assert found.ttft.total == pytest.approx(0.5)
    assert found.e2e.total == pytest.approx(3.0)
    assert found.gap.total == pytest.approx(0.3)
    assert sum(found.queue.counts) == 0
    assert (found.late, found.refused_in_stream, found.degraded) == (0, 0, [])


@pytest.mark.parametrize(
    ("changed", "end"),
    [
        (unsent(refused=Reason.QUEUE_FULL), ("refused", "queue_full", 1)),
        (unsent(), ("client_left", "", 1)),
        (unsent(refused=Reason.QUEUE_FULL, degraded="cache"), ("answered", "queue_full", 1)),
        (unsent(degraded="cache"), ("answered", "", 1)),
        (row(outcome=Outcome.CUT, refused=Reason.NO_REPLICA, degraded="cache"), ("answered", "no_replica", 1)),
        (row(degraded="light_model"), ("ok", "", 1)),
        (row(refused=Reason.QUEUE_FULL, degraded="light_model"), ("ok", "queue_full", 1)),
        (unsent(is_stored=True), ("stored", "", 1)),
        (row(outcome=Outcome.CONNECT_FAILED, refused=Reason.RETRY_ALLOWANCE), ("connect_failed", "retry_allowance", 1)),
    ],
)
def test_each_way_to_end_has_its_label(changed: Row, end: tuple[str, str, int]) -> None:
    assert counted(changed).requests == [end]


def test_a_refusal_after_waiting_counts_its_queue_time_and_no_tokens() -> None:
    found = counted(unsent(refused=Reason.QUEUE_TIMEOUT, queued_at=100.0))
    assert found.queue.total == pytest.approx(3.0)
    assert (found.prompt_tokens, sum(found.ttft.counts), sum(found.e2e.counts)) == (0, 0, 0)


def test_late_and_degraded_and_in_stream_errors_are_counted_apart() -> None:
    found = counted(row(deadline_s=1.0), row(degraded="cache"), unsent(refused=Reason.MARKED, refused_in_stream=True))
    assert (found.late, found.degraded, found.refused_in_stream) == (1, [("cache", 1)], 1)


def test_streams_that_went_on_elsewhere_are_counted_apart_by_how_they_ended() -> None:
    found = counted(row(continuations=1), row(continuations=2, outcome=Outcome.CUT), row())
    assert found.continued == [("ok", 1), ("cut", 1)]


def test_an_answer_that_failed_teaches_no_end_to_end_latency() -> None:
    found = counted(row(outcome=Outcome.CUT))
    assert (sum(found.e2e.counts), sum(found.ttft.counts)) == (0, 1)


def test_names_that_are_not_configured_are_counted_as_other() -> None:
    snapshot = snapshot_of(
        row(upstream="ghost"), row(service_class="ghost"), unsent(upstream="x" * 99, service_class="y")
    )
    assert series(snapshot, OTHER, "interactive").requests == [("ok", "", 1)]
    assert series(snapshot, "chat", OTHER).requests == [("ok", "", 1)]
    assert series(snapshot, OTHER, OTHER).requests == [("client_left", "", 1)]


def test_newly_configured_names_get_their_series_and_old_ones_keep_theirs() -> None:
    metrics = Metrics(["chat"], ["interactive"], 0.0)
    metrics.observe(row())
    metrics.serve(["code"], ["interactive", "batch"])
    metrics.observe(row(upstream="code", service_class="batch"))
    snapshot = metrics.snapshot({}, 0)
    assert series(snapshot, "code", "batch").requests == [("ok", "", 1)]
    assert series(snapshot, "chat", "interactive").requests == [("ok", "", 1)]


def test_calls_refused_at_the_edge_are_counted_by_code_up_to_a_bound() -> None:
    edges = [Row(n, "r", "/v1/x", 400, f"code_{n}", 1.0, 2.0, 0) for n in range(INVALID_CODES + 5)]
    counts = dict(snapshot_of(*edges).invalid)
    assert len(counts) == INVALID_CODES + 1
    assert counts[OTHER] == 5


def test_configured_series_are_there_from_the_start_and_other_only_when_used() -> None:
    snapshot = snapshot_of()
    assert [(each.upstream, each.service_class) for each in snapshot.series] == [("chat", "interactive")]


def test_latency_buckets_reach_ten_minutes() -> None:
    assert max(SECONDS) == 600


@given(st.lists(st.floats(0, 1e4), max_size=50))
def test_every_value_is_in_the_bucket_whose_bound_is_not_below_it(values: list[float]) -> None:
    histogram = Histogram(SECONDS)
    for value in values:
        histogram.observe(value)
    data = histogram.data()
    bounds = [*data.bounds, float("inf")]
    for index, bound in enumerate(bounds):
        below = bounds[index - 1] if index else float("-inf")
        assert data.counts[index] == sum(below < value <= bound for value in values)
    assert data.total == pytest.approx(sum(values))


def test_a_snapshot_survives_messagepack() -> None:
    metrics = Metrics(["chat"], ["interactive"], 12.5)
    metrics.observe(row())
    metrics.observe_lag(0.002)
    snapshot = metrics.snapshot({"permits_open": 1}, 3)
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(snapshot), type=Snapshot) == snapshot
