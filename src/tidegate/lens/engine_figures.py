"""What engines report about themselves, and how often those of our own were started again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from tidegate.policy.reading import Reading

GAUGES = (
    ("tidegate_engine_running", "Sequences in the engine's running batch, foreign ones too.", "running"),
    ("tidegate_engine_waiting", "Requests in the engine's own queue.", "waiting"),
    ("tidegate_engine_kv_used_tokens", "KV memory in use, in tokens, as the engine says.", "kv_used_tokens"),
)
COUNTERS = (
    (
        "tidegate_engine_preemptions",
        "Running sequences that the engine took their KV memory and computed again; since its start.",
        "preemptions",
    ),
    (
        "tidegate_engine_prefix_cache_query_tokens",
        "Prompt tokens that the engine looked up in its prefix cache; since its start.",
        "prefix_asked_tokens",
    ),
    (
        "tidegate_engine_prefix_cache_hit_tokens",
        "Prompt tokens that the engine found in its prefix cache; since its start.",
        "prefix_found_tokens",
    ),
    (
        "tidegate_engine_turned_away",
        "Requests that the engine refused because its own queue was full; since its start.",
        "turned_away",
    ),
)


def engine_figures(readings: Mapping[str, Reading], restarts: Mapping[str, int]) -> Iterator[Metric]:
    """By replica; a figure that an engine does not tell is left out, never shown as 0."""
    for name, definition, figure in GAUGES:
        yield _filled(GaugeMetricFamily(name, definition, labels=("replica",)), readings, figure)
    for name, definition, figure in COUNTERS:
        yield _filled(CounterMetricFamily(name, definition, labels=("replica",)), readings, figure)
    restarted = CounterMetricFamily(
        "tidegate_engine_restarts", "Times that Tidegate started an engine of its own again.", labels=("replica",)
    )
    for replica, count in restarts.items():
        restarted.add_metric((replica,), count)
    yield restarted


def _filled(
    family: GaugeMetricFamily | CounterMetricFamily, readings: Mapping[str, Reading], figure: str
) -> GaugeMetricFamily | CounterMetricFamily:
    for replica, reading in readings.items():
        value = getattr(reading, figure)
        if value is not None:
            family.add_metric((replica,), value)
    return family
