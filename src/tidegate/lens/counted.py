"""What was counted, as it travels from the data process to the parent."""

from __future__ import annotations

from typing import Any

import msgspec


class HistogramData(msgspec.Struct, array_like=True):
    """A histogram as it travels; ``counts`` are per bucket, not cumulative."""

    bounds: list[float]
    counts: list[int]
    total: float


class SeriesData(msgspec.Struct, array_like=True):
    """One upstream and class as it travels."""

    upstream: str
    service_class: str
    requests: list[tuple[str, str, int]]
    """(outcome, reason, count)."""
    degraded: list[tuple[str, int]]
    late: int
    refused_in_stream: int
    retries: int
    prompt_tokens: int
    output_tokens: int
    ttft: HistogramData
    e2e: HistogramData
    queue: HistogramData
    gap: HistogramData
    continued: list[tuple[str, int]]
    """(outcome, count) of streams that went on at another replica."""
    input_problems: list[tuple[str, int]]
    """(problem, count) of requests that were passed on though something is wrong with them."""


class ReplicaData(msgspec.Struct, array_like=True):
    """What closed requests had reserved on one replica, and what they used of it."""

    replica: str
    reserved_slots: int
    used_tokens: int
    """Prompt (once per sequence) and output."""
    output_problems: list[tuple[str, int]] = []
    """(problem, count) of answers that were not as they should be."""


class Snapshot(msgspec.Struct, array_like=True):
    """Everything ``render`` needs, taken in the data process at scrape time."""

    series: list[SeriesData]
    replicas: list[ReplicaData]
    invalid: list[tuple[str, int]]
    """(code, count) of calls that never became a request."""
    loop_lag: HistogramData
    started_at: float
    """Unix time."""
    records_lost: int
    view: dict[str, Any]
    """``Path.view(now)``: the gauges."""
