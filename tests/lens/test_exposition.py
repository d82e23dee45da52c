"""The exposition parses, keeps its definitions, and shows what was counted and what is so."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse

from tests.lens.rows import row, unsent
from tidegate.lens.counted import Snapshot
from tidegate.lens.exposition import ERRORS, ParentFacts, render
from tidegate.lens.metrics import Metrics
from tidegate.policy.decisions import Reason
from tidegate.policy.groups import GroupConfig, GroupsConfig, PoolConfig
from tidegate.policy.outcomes import Outcome
from tidegate.policy.path import Path
from tidegate.policy.path_config import PathConfig
from tidegate.policy.reading import Capacity, ReplicaConfig
from tidegate.policy.request import Request
from tidegate.policy.slots import SlotsConfig

FACTS = ParentFacts(started_at=1000.0, config_loaded_at=1001.0, data_process_restarts=2)
OPENMETRICS = "application/openmetrics-text; version=1.0.0"
NAME = re.compile(r"tidegate_[a-z0-9_]+")

VIEW: dict[str, Any] = {
    "open_requests": 8,
    "marks": 3,
    "permits": 5,
    "permit_leaks": 0,
    "abort_unconfirmed": 1,
    "queues": {"chat": {"requests": 7, "tokens": 900, "bytes": 4000}},
    "replicas": {
        "chat-0": {
            "slots": {"total": 100, "slot_tokens": 256, "free": 40, "used": 50, "reserved": 10, "overdrafts": 2},
            "limit": 32.0,
            "in_flight": 6,
            "pending_prefill_tokens": 128,
            "ready": True,
            "breaker": "half_open",
        },
        "chat-1": {"slots": {"total": None, "free": None, "used": 1}, "breaker": "closed", "ready": False},
    },
}


def snapshot() -> Snapshot:
    metrics = Metrics(["chat"], ["interactive"], 900.0)
    metrics.observe(row())
    metrics.observe(row(outcome=Outcome.CUT, attempts=2))
    metrics.observe(row(outcome=Outcome.CLIENT_LEFT, deadline_s=1.0))
    metrics.observe(row(deadline_s=1.0, degraded="cache", continuations=1))
    metrics.observe(unsent(refused=Reason.QUEUE_FULL))
    metrics.observe(unsent(refused=Reason.QUEUE_TIMEOUT, queued_at=100.0, refused_in_stream=True))
    metrics.observe_lag(0.003)
    return metrics.snapshot(VIEW, 4)


def families(taken: Snapshot | None = None) -> dict[str, Metric]:
    body, _ = render(taken, FACTS)
    return {family.name: family for family in parse(body.decode())}


def value(found: dict[str, Metric], sample_name: str, **labels: str) -> float:
    [sample] = [
        sample
        for family in found.values()
        for sample in family.samples
        if sample.name == sample_name and labels.items() <= sample.labels.items()
    ]
    return sample.value


def test_every_family_is_named_by_the_rule_and_defines_itself() -> None:
    for name, family in families(snapshot()).items():
        assert NAME.fullmatch(name)
        assert len(family.documentation) > 10
        for sample in family.samples:
            assert family.type != "counter" or sample.name.endswith("_total")


def test_labels_are_only_closed_enums_and_configured_names() -> None:
    labels = {key for family in families(snapshot()).values() for sample in family.samples for key in sample.labels}
    assert labels == {"upstream", "class", "outcome", "reason", "rung", "replica", "state", "le", "problem"}


def test_requests_errors_sheds_late_degraded_and_retries_are_counted_apart() -> None:
    found = families(snapshot())
    chat = {"upstream": "chat", "class": "interactive"}
    assert value(found, "tidegate_requests_total", **chat, outcome="ok", reason="") == 2
    assert value(found, "tidegate_requests_total", **chat, outcome="refused", reason="queue_full") == 1
    assert value(found, "tidegate_requests_errors_total", **chat, outcome="cut") == 1
    assert value(found, "tidegate_requests_shed_total", **chat, reason="queue_timeout") == 1
    assert value(found, "tidegate_requests_late_total", **chat) == 1
    assert value(found, "tidegate_requests_degraded_total", **chat, rung="cache") == 1
    assert value(found, "tidegate_requests_refused_in_stream_total", **chat) == 1
    assert value(found, "tidegate_requests_continued_total", **chat, outcome="ok") == 1
    assert value(found, "tidegate_retries_total", **chat) == 1
    assert value(found, "tidegate_prompt_tokens_total", **chat) == 400
    assert value(found, "tidegate_output_tokens_total", **chat) == 120


def test_errors_and_sheds_are_there_at_nought_before_the_first_one() -> None:
    found = families(Metrics(["chat"], ["interactive"], 900.0).snapshot({}, 0))
    chat = {"upstream": "chat", "class": "interactive"}
    for outcome in ERRORS:
        assert value(found, "tidegate_requests_errors_total", **chat, outcome=outcome) == 0
    assert value(found, "tidegate_requests_shed_total", **chat, reason="queue_full") == 0
    assert value(found, "tidegate_requests_total", **chat) == 0


def test_the_endings_that_are_errors_are_neither_the_clients_nor_ours() -> None:
    assert set(ERRORS) == {
        "pushback",
        "connect_failed",
        "engine_error",
        "cut",
        "first_byte_timeout",
        "gap_timeout",
        "total_timeout",
        "invalid_output",
        "shutdown",
    }


def test_histograms_are_cumulative_and_their_count_is_their_last_bucket() -> None:
    found = families(snapshot())
    assert value(found, "tidegate_request_e2e_seconds_count", upstream="chat") == 2
    assert value(found, "tidegate_request_e2e_seconds_bucket", upstream="chat", le="2.5") == 0
    assert value(found, "tidegate_request_e2e_seconds_bucket", upstream="chat", le="5.0") == 2
    assert value(found, "tidegate_request_e2e_seconds_bucket", upstream="chat", le="600.0") == 2
    assert value(found, "tidegate_request_e2e_seconds_bucket", upstream="chat", le="+Inf") == 2
    assert value(found, "tidegate_request_e2e_seconds_sum", upstream="chat") == pytest.approx(6.0)
    assert value(found, "tidegate_request_queue_seconds_count", upstream="chat") == 1
    assert value(found, "tidegate_loop_lag_seconds_count") == 1


def test_gauges_show_the_view_and_leave_out_what_it_does_not_know() -> None:
    found = families(snapshot())
    assert value(found, "tidegate_queue_requests", upstream="chat") == 7
    assert value(found, "tidegate_slots_free", replica="chat-0") == 40
    assert value(found, "tidegate_pool_pressure_ratio", replica="chat-0") == pytest.approx(0.6)
    assert value(found, "tidegate_limit_value", replica="chat-0") == 32
    assert value(found, "tidegate_breaker_state", replica="chat-0", state="half_open") == 1
    assert value(found, "tidegate_breaker_state", replica="chat-0", state="open") == 0
    assert value(found, "tidegate_breaker_state", replica="chat-1", state="closed") == 1
    assert value(found, "tidegate_replica_ready", replica="chat-1") == 0
    assert value(found, "tidegate_slots_used", replica="chat-1") == 1
    assert [sample.labels["replica"] for sample in found["tidegate_slots_free"].samples] == ["chat-0"]
    assert value(found, "tidegate_requests_open") == 8
    assert value(found, "tidegate_permits_open") == 5
    assert value(found, "tidegate_permits_leaked") == 0
    assert value(found, "tidegate_aborts_unconfirmed_total") == 1


def test_three_metrics_stand_in_place_of_one_fragmentation() -> None:
    view = VIEW["replicas"]["chat-0"] | {"kv_used_tokens": 60 * 256 * 3 // 4}
    found = families(Metrics(["chat"], ["interactive"], 900.0).snapshot({"replicas": {"chat-0": view}}, 0))
    assert value(found, "tidegate_pool_pressure_ratio", replica="chat-0") == pytest.approx(0.6)
    assert value(found, "tidegate_pool_external_fragmentation_ratio", replica="chat-0") == 0
    assert value(found, "tidegate_pool_internal_waste_ratio", replica="chat-0") == pytest.approx(0.25)
    unknown = families(snapshot())
    assert [sample.labels["replica"] for sample in unknown["tidegate_pool_external_fragmentation_ratio"].samples] == [
        "chat-0"
    ]
    assert unknown["tidegate_pool_internal_waste_ratio"].samples == []


def test_groups_show_what_they_hold_and_what_was_lent() -> None:
    """Two models on 4 000 bytes; the one that is guaranteed 1 000 has 3 000."""
    groups = tuple(GroupConfig(name=f"card/{name}", floor_bytes=1000, cap_bytes=4000) for name in ("text", "images"))
    replicas = tuple(
        ReplicaConfig(
            name=name, upstream=name, capacity=Capacity(slot_tokens=1, bytes_per_token=1), group=f"card/{name}"
        )
        for name in ("text", "images")
    )
    pool = PoolConfig(name="card", budget_bytes=4000, groups=groups)
    path = Path(PathConfig(replicas=replicas, groups=GroupsConfig(pools=(pool,))), now=0.0)
    path.offer(Request(1, "images", 0.0, 1, prompt_tokens=2900, max_tokens=100), 0.0)
    metrics = Metrics(["text", "images"], ["interactive"], 900.0)
    found = families(metrics.snapshot(path.view(1.0), 0))
    assert value(found, "tidegate_group_held_bytes", pool="card", group="images") == 3000
    assert value(found, "tidegate_group_borrowed_bytes", pool="card", group="images") == 2000
    assert value(found, "tidegate_group_floor_bytes", pool="card", group="text") == 1000
    assert value(found, "tidegate_group_waits", pool="card", group="text") == 0
    assert value(found, "tidegate_shared_pool_used_bytes", pool="card") == 3000
    assert value(found, "tidegate_shared_pool_lent_bytes", pool="card") == 0


def test_waste_is_the_share_of_reserved_tokens_that_were_not_used() -> None:
    reserved, used = 4 * 2 * 256, 4 * (100 + 30)
    assert value(families(snapshot()), "tidegate_slots_waste_ratio", replica="chat-0") == pytest.approx(
        1 - used / reserved
    )


def test_the_view_of_a_real_path_fills_every_gauge() -> None:
    capacity = Capacity(kv_tokens=4096, sequences=4, context_tokens=2048)
    replicas = (ReplicaConfig(name="chat-0", upstream="chat", capacity=capacity),)
    path = Path(PathConfig(replicas=replicas, slots=SlotsConfig(mode="learned")), now=0.0)
    metrics = Metrics(["chat"], ["interactive"], 900.0)
    metrics.observe(row())
    found = families(metrics.snapshot(path.view(1.0), 0))
    without_samples = {name for name, family in found.items() if not family.samples}
    # What engines report comes from readings, and not from the view.
    without_samples = {name for name in without_samples if not name.startswith("tidegate_engine_")}
    assert without_samples == {
        "tidegate_requests_continued",
        "tidegate_requests_degraded",
        "tidegate_requests_invalid",
        "tidegate_pool_internal_waste_ratio",
        "tidegate_mark_remaining_seconds",
    }
    assert value(found, "tidegate_slots_free", replica="chat-0") == 16
    assert value(found, "tidegate_queue_requests", upstream="chat") == 0
    assert value(found, "tidegate_breaker_state", replica="chat-0", state="closed") == 1


def test_the_parents_own_facts_are_there_even_when_the_data_process_does_not_answer() -> None:
    found = families(None)
    assert value(found, "tidegate_up") == 0
    assert value(found, "tidegate_config_last_reload_successful") == 1
    assert value(found, "tidegate_config_last_reload_success_timestamp_seconds") == 1001
    assert value(found, "tidegate_data_process_restarts_total") == 2
    assert "tidegate_requests" not in found


def test_process_facts_come_from_the_data_process() -> None:
    found = families(snapshot())
    assert value(found, "tidegate_up") == 1
    assert value(found, "tidegate_process_start_time_seconds") == 900
    assert value(found, "tidegate_records_lost_total") == 4


def test_an_openmetrics_scraper_gets_openmetrics() -> None:
    body, content_type = render(snapshot(), FACTS, OPENMETRICS)
    assert content_type.startswith("application/openmetrics-text")
    parsed: Iterator[Metric] = parse_openmetrics(body.decode())  # type: ignore[no-untyped-call] # theirs is untyped
    assert "tidegate_requests" in {family.name for family in parsed}


def test_learned_reservations_show_their_level_their_caution_and_how_often_they_were_enough() -> None:
    path = Path(
        PathConfig(
            replicas=(ReplicaConfig(name="chat-0", upstream="chat"), ReplicaConfig(name="code-0", upstream="code")),
            slots=SlotsConfig(mode="learned"),
        ),
        now=0.0,
    )
    expectation = path.upstreams["chat"].expectation
    for output_tokens in (100, 300):
        expectation.learn(Request(1, "chat", 0.0, 1), 1000, output_tokens, 200)
    expectation.observe(1, 1.0)
    found = families(Metrics(["chat"], ["interactive"], 900.0).snapshot(path.view(1.0), 0))
    assert value(found, "tidegate_reservation_judged_total", upstream="chat") == 2
    assert value(found, "tidegate_reservation_covered_total", upstream="chat") == 1
    assert value(found, "tidegate_reservation_level_ratio", upstream="chat") == pytest.approx(0.5)
    assert value(found, "tidegate_reservation_caution_ratio", upstream="chat") == 0.25
    assert value(found, "tidegate_reservation_judged_total", upstream="code") == 0


def test_problems_of_answers_are_counted_by_replica_and_those_of_requests_by_upstream() -> None:
    metrics = Metrics(["chat"], ["interactive"], 900.0)
    metrics.observe(row(input_problem="repetitive_input"))
    metrics.observe(row(input_problem="repetitive_input"))
    metrics.observe_output("chat-0", "output_empty")
    metrics.observe_output("chat-1", "output_empty")
    metrics.observe_output("chat-1", "output_empty")
    found = families(metrics.snapshot({}, 0))
    assert value(found, "tidegate_output_problems_total", replica="chat-0", problem="output_empty") == 1
    assert value(found, "tidegate_output_problems_total", replica="chat-1", problem="output_empty") == 2
    assert value(found, "tidegate_output_problems_total", replica="chat-1", problem="output_format") == 0
    chat = {"upstream": "chat", "class": "interactive"}
    assert value(found, "tidegate_input_problems_total", **chat, problem="repetitive_input") == 2
