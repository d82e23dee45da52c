"""Gauges of calls under an Idempotency-Key and of jobs, from ``Gateway.view``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric

KEYED = {
    "running": ("tidegate_keyed_running", "Requests with an Idempotency-Key that run or wait."),
    "kept": ("tidegate_keyed_answers", "Answers that a repeat under their Idempotency-Key would get."),
    "kept_bytes": ("tidegate_keyed_bytes", "Bytes of those answers."),
}
JOBS = {
    "jobs": ("tidegate_jobs", "Jobs, running, parked and ended, that can be asked for."),
    "held_bytes": ("tidegate_jobs_bytes", "Bytes that jobs hold or have reserved (jobs.max_bytes)."),
    "parked": ("tidegate_jobs_parked", "Jobs that are offered to the policies later."),
    "offered": ("tidegate_jobs_offered", "Jobs that stand in the queues or run (jobs.max_offered)."),
    "at_door": ("tidegate_jobs_at_door", "Clients that wait for an answer and will take a job."),
}


def repeat_gauges(view: Mapping[str, Any]) -> Iterator[Metric]:
    """What the view lacks is left out, never shown as 0."""
    for key, gauges in (("keyed", KEYED), ("jobs", JOBS)):
        figures = view.get(key)
        if isinstance(figures, Mapping):
            for name, described in gauges.items():
                yield GaugeMetricFamily(*described, value=float(figures[name]))
