"""A snapshot in Prometheus form. Runs in the parent, so a scrape costs the data process only the copy.

Every HELP text is the definition of its metric. Labels come from closed enums and from the
configuration, never from a client (but for a few marks, ``mark_gauges``): 2 000 label sets cost a scrape 400 ms.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import accumulate

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector, CollectorRegistry

from tidegate.lens.counted import HistogramData, SeriesData, Snapshot
from tidegate.lens.engine_figures import engine_figures
from tidegate.lens.explain import REFUSED
from tidegate.lens.gauges import gauges, slot_tokens_of
from tidegate.policy.outcomes import Outcome
from tidegate.policy.output.problem import Problem
from tidegate.policy.reading import Reading

SERIES_LABELS = ("upstream", "class")
INPUT_PROBLEMS = ("repetitive_input",)
"""What a request can be marked with and passed on."""

ERRORS = frozenset(outcome.value for outcome in Outcome) - {
    Outcome.OK.value,
    Outcome.CLIENT_LEFT.value,
    Outcome.CLIENT_FAULT.value,
    Outcome.OUTRUN.value,
}
"""Outcomes for which neither the client nor a decision of ours is to blame."""


@dataclass(slots=True, kw_only=True)
class ParentFacts:
    """What the parent knows. Times are Unix seconds."""

    started_at: float
    config_is_current: bool = True
    """The last reload succeeded (or there was none)."""
    config_loaded_at: float = 0.0
    data_process_restarts: int = 0
    readings: Mapping[str, Reading] = field(default_factory=dict)
    """The engines' latest, by replica."""
    engine_restarts: Mapping[str, int] = field(default_factory=dict)
    """Of the engines that Tidegate started, by replica."""


def render(snapshot: Snapshot | None, parent: ParentFacts, accept: str = "") -> tuple[bytes, str]:
    """The exposition and its content type. ``accept`` is the scraper's header: OpenMetrics or plain text.

    ``snapshot`` None: the data process does not answer; ``tidegate_up`` is 0 and its metrics are missing.
    """
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Scrape(snapshot, parent))
    encode, content_type = choose_encoder(accept)
    return encode(registry), content_type


class _Scrape(Collector):
    def __init__(self, snapshot: Snapshot | None, parent: ParentFacts) -> None:
        self._snapshot = snapshot
        self._parent = parent

    def collect(self) -> Iterator[Metric]:
        snapshot = self._snapshot
        yield GaugeMetricFamily("tidegate_up", "1 when the data process answers.", value=float(snapshot is not None))
        yield from _of_parent(self._parent)
        yield from engine_figures(self._parent.readings, self._parent.engine_restarts)
        if snapshot is None:
            return
        yield from _of_requests(snapshot.series)
        yield from _of_series(snapshot.series)
        yield from _histograms(snapshot.series)
        yield from _of_process(snapshot)
        yield from gauges(snapshot.view)
        yield _waste(snapshot)
        yield _output_problems(snapshot)


def _of_parent(parent: ParentFacts) -> Iterator[Metric]:
    yield GaugeMetricFamily(
        "tidegate_config_last_reload_successful",
        "1 when the configuration in force is the newest one; 0 when the last reload was refused and the old one kept.",
        value=float(parent.config_is_current),
    )
    yield GaugeMetricFamily(
        "tidegate_config_last_reload_success_timestamp_seconds",
        "Unix time at which the configuration in force was loaded.",
        value=parent.config_loaded_at,
    )
    yield CounterMetricFamily(
        "tidegate_data_process_restarts",
        "Times the parent had to start the data process again.",
        value=parent.data_process_restarts,
    )
    yield GaugeMetricFamily(
        "tidegate_parent_start_time_seconds", "Unix time at which the parent started.", value=parent.started_at
    )


def _of_process(snapshot: Snapshot) -> Iterator[Metric]:
    yield GaugeMetricFamily(
        "tidegate_process_start_time_seconds",
        "Unix time at which the data process started; its counters begin at 0 there.",
        value=snapshot.started_at,
    )
    yield CounterMetricFamily(
        "tidegate_records_lost",
        "Records of closed requests dropped because the parent did not read them.",
        value=snapshot.records_lost,
    )
    lag = HistogramMetricFamily("tidegate_loop_lag_seconds", "How late timers of the data process's event loop fired.")
    _add(lag, (), snapshot.loop_lag)
    yield lag
    invalid = CounterMetricFamily(
        "tidegate_requests_invalid",
        "Calls answered with an error before they became a request (no JSON, too large, no key), by error code.",
        labels=("code",),
    )
    for code, count in snapshot.invalid:
        invalid.add_metric((code,), count)
    yield invalid


def _of_requests(series: list[SeriesData]) -> Iterator[Metric]:
    """Everything that is a sum over ``requests``."""
    requests = CounterMetricFamily(
        "tidegate_requests",
        "Closed requests, each once. outcome: of the last attempt, or answered (by the ladder), refused or client_left "
        "when there was none; joined and replayed got another request's answer (Idempotency-Key). reason: of the "
        "refusal, if any.",
        labels=(*SERIES_LABELS, "outcome", "reason"),
    )
    errors = CounterMetricFamily(
        "tidegate_requests_errors",
        "Closed requests whose last attempt failed through no fault of the client; refusals are not errors.",
        labels=(*SERIES_LABELS, "outcome"),
    )
    shed = CounterMetricFamily(
        "tidegate_requests_shed",
        "Closed requests refused without an attempt, by reason.",
        labels=(*SERIES_LABELS, "reason"),
    )
    for one in series:
        names = (one.upstream, one.service_class)
        for outcome, reason, count in one.requests or [(Outcome.OK.value, "", 0)]:
            requests.add_metric((*names, outcome, reason), count)
        # From the start, at 0: the rate of a series that appears at 1 misses its first event.
        for outcome in sorted(ERRORS):
            errors.add_metric((*names, outcome), sum(count for end, _, count in one.requests if end == outcome))
        for reason in REFUSED:
            shed.add_metric((*names, reason.value), _shed(one, reason.value))
    yield from (requests, errors, shed)


def _shed(series: SeriesData, wanted: str) -> int:
    return sum(count for outcome, reason, count in series.requests if outcome == "refused" and reason == wanted)


def _of_series(series: list[SeriesData]) -> Iterator[Metric]:
    degraded = CounterMetricFamily(
        "tidegate_requests_degraded",
        "Closed requests that got less than they asked for, by rung of the ladder; not counted as errors.",
        labels=(*SERIES_LABELS, "rung"),
    )
    for one in series:
        for rung, count in one.degraded:
            degraded.add_metric((one.upstream, one.service_class, rung), count)
    yield degraded
    marked = CounterMetricFamily(
        "tidegate_input_problems",
        "Closed requests that were passed on though something is wrong with them.",
        labels=(*SERIES_LABELS, "problem"),
    )
    for one in series:
        counted = dict(one.input_problems)
        for problem in INPUT_PROBLEMS:
            marked.add_metric((one.upstream, one.service_class, problem), counted.get(problem, 0))
    yield marked
    continued = CounterMetricFamily(
        "tidegate_requests_continued",
        "Streams that went on at another replica when theirs failed in the middle of them, by how they ended.",
        labels=(*SERIES_LABELS, "outcome"),
    )
    for one in series:
        for outcome, count in one.continued:
            continued.add_metric((one.upstream, one.service_class, outcome), count)
    yield continued
    scalars = (
        ("tidegate_requests_late", "Requests answered in full, but after their deadline.", "late"),
        (
            "tidegate_requests_refused_in_stream",
            "Refusals and errors sent as a stream event because a heartbeat had already sent status 200.",
            "refused_in_stream",
        ),
        ("tidegate_retries", "Attempts beyond the first.", "retries"),
        ("tidegate_prompt_tokens", "Prompt tokens of admitted requests.", "prompt_tokens"),
        ("tidegate_output_tokens", "Output tokens of admitted requests.", "output_tokens"),
    )
    for name, definition, figure in scalars:
        family = CounterMetricFamily(name, definition, labels=SERIES_LABELS)
        for one in series:
            family.add_metric((one.upstream, one.service_class), getattr(one, figure))
        yield family


def _waste(snapshot: Snapshot) -> Metric:
    family = GaugeMetricFamily(
        "tidegate_slots_waste_ratio",
        "Share of the tokens that closed requests had reserved on the replica and did not use, since the start.",
        labels=("replica",),
    )
    for each in snapshot.replicas:
        slot_tokens = slot_tokens_of(snapshot.view, each.replica)
        if each.reserved_slots and slot_tokens:
            family.add_metric((each.replica,), 1 - each.used_tokens / (each.reserved_slots * slot_tokens))
    return family


def _output_problems(snapshot: Snapshot) -> Metric:
    family = CounterMetricFamily(
        "tidegate_output_problems",
        "Answers of the replica that were empty, truncated, garbled, repetitive or not of the form that was asked for, "
        "also those that another replica made good.",
        labels=("replica", "problem"),
    )
    for each in snapshot.replicas:
        counted = dict(each.output_problems)
        for problem in Problem:
            family.add_metric((each.replica, problem.value), counted.get(problem.value, 0))
    return family


def _histograms(series: list[SeriesData]) -> Iterator[Metric]:
    families = (
        ("tidegate_request_ttft_seconds", "From arrival to the first token; admitted requests that had one.", "ttft"),
        ("tidegate_request_e2e_seconds", "From arrival to the end of a complete answer.", "e2e"),
        ("tidegate_request_queue_seconds", "Time in our queue of requests that waited, however they ended.", "queue"),
        ("tidegate_request_gap_seconds", "Longest silence between two reads of one engine's answer.", "gap"),
    )
    for name, definition, figure in families:
        family = HistogramMetricFamily(name, definition, labels=SERIES_LABELS)
        for one in series:
            _add(family, (one.upstream, one.service_class), getattr(one, figure))
        yield family


def _add(family: HistogramMetricFamily, labels: tuple[str, ...], data: HistogramData) -> None:
    bounds = [*map(str, map(float, data.bounds)), "+Inf"]
    buckets = [(bound, float(count)) for bound, count in zip(bounds, accumulate(data.counts), strict=True)]
    family.add_metric(labels, buckets, data.total)
