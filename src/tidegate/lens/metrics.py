"""Counters and histograms of the data process: integers only, no names from clients.

A series exists per configured upstream and service class, so memory and the cost of a scrape are
bounded by the configuration; whatever is not configured is counted under ``other``. Everything
that can be summed from these at scrape time (errors, sheds) is, and not counted a second time.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from typing import Any

from tidegate.lens.counted import HistogramData, ReplicaData, SeriesData, Snapshot
from tidegate.lens.row import Row
from tidegate.policy.ladder import Rung
from tidegate.policy.outcomes import Outcome

OTHER = "other"
"""Label of an upstream, class or code that is not in the configuration."""

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300, 600)
"""Bounds of every latency histogram. They reach 600 s, the stock OpenAI client's own timeout (R13)."""

# A look into an Enum class costs about a microsecond in Python 3.11, and this is needed for every request.
_OK = Outcome.OK

CACHE = Rung.CACHE.value

LAG_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1)

INVALID_CODES = 64
"""Most distinct error codes counted for calls refused at the edge; later ones are ``other``."""


class Histogram:
    """Preallocated buckets, one more than there are bounds (the last is +Inf)."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def data(self) -> HistogramData:
        return HistogramData(list(self.bounds), self.counts.copy(), self.total)


class Series:
    """Counts of one upstream and class."""

    __slots__ = (
        "continued",
        "degraded",
        "e2e",
        "gap",
        "input_problems",
        "late",
        "output_tokens",
        "prompt_tokens",
        "queue",
        "refused_in_stream",
        "requests",
        "retries",
        "ttft",
    )

    def __init__(self) -> None:
        self.requests: dict[tuple[str, str], int] = {}
        self.degraded: dict[str, int] = {}
        self.continued: dict[str, int] = {}
        self.input_problems: dict[str, int] = {}
        self.late = 0
        self.refused_in_stream = 0
        self.retries = 0
        self.prompt_tokens = 0
        self.output_tokens = 0
        self.ttft = Histogram(SECONDS)
        self.e2e = Histogram(SECONDS)
        self.queue = Histogram(SECONDS)
        self.gap = Histogram(SECONDS)

    def observe(self, row: Row) -> None:
        """Count one closed request."""
        outcome, refused = row.outcome, row.refused
        # A stored answer made good what its attempt came to; what another model answered has an outcome of its own.
        if outcome is None or (refused is not None and row.degraded == CACHE):
            ending = _end_without_attempt(row)
        else:
            ending = outcome._value_
        end = (ending, "" if refused is None else refused._value_)
        self.requests[end] = self.requests.get(end, 0) + 1
        if row.admitted_at:
            self._observe_attempts(row)
        if row.queued_at:
            self.queue.observe((row.admitted_at or row.closed_at) - row.queued_at)
        if row.degraded is not None:
            self.degraded[row.degraded] = self.degraded.get(row.degraded, 0) + 1
        if row.refused_in_stream:
            self.refused_in_stream += 1
        if row.input_problem:
            self.input_problems[row.input_problem] = self.input_problems.get(row.input_problem, 0) + 1
        if row.continuations:
            self.continued[ending] = self.continued.get(ending, 0) + 1

    def _observe_attempts(self, row: Row) -> None:
        arrived_at = row.arrived_at
        self.prompt_tokens += row.prompt_tokens
        self.output_tokens += row.output_tokens
        if row.attempts > 1:
            self.retries += row.attempts - 1
        if row.first_token_at:
            self.ttft.observe(row.first_token_at - arrived_at)
        if row.longest_gap_s:
            self.gap.observe(row.longest_gap_s)
        if row.outcome is _OK:
            took_s = row.closed_at - arrived_at
            self.e2e.observe(took_s)
            if row.deadline_s is not None and took_s > row.deadline_s:
                self.late += 1

    def data(self, upstream: str, service_class: str) -> SeriesData:
        return SeriesData(
            upstream,
            service_class,
            [(outcome, reason, count) for (outcome, reason), count in self.requests.items()],
            list(self.degraded.items()),
            self.late,
            self.refused_in_stream,
            self.retries,
            self.prompt_tokens,
            self.output_tokens,
            self.ttft.data(),
            self.e2e.data(),
            self.queue.data(),
            self.gap.data(),
            list(self.continued.items()),
            list(self.input_problems.items()),
        )


def _end_without_attempt(row: Row) -> str:
    """What happened to a request that was never sent, or whose failed attempt the ladder made good."""
    if row.reuse:
        return row.reuse
    if row.is_stored:
        return "stored"
    if row.degraded is not None:
        return "answered"
    return "client_left" if row.refused is None else "refused"


class ReplicaSum:
    """Counts of one replica."""

    __slots__ = ("output_problems", "reserved_slots", "used_tokens")

    def __init__(self) -> None:
        self.reserved_slots = 0
        self.used_tokens = 0
        self.output_problems: dict[str, int] = {}


class Metrics:
    """Lives in the data process, on its loop; ``observe`` costs at most 3 µs.

    ``upstreams`` and ``classes`` are the configured names; ``started_at`` is Unix time.
    """

    def __init__(self, upstreams: Iterable[str], classes: Iterable[str], started_at: float) -> None:
        self._series = {
            (upstream, service_class): Series()
            for upstream in (*upstreams, OTHER)
            for service_class in (*classes, OTHER)
        }
        self._replicas: dict[str, ReplicaSum] = {}
        self._invalid: dict[str, int] = {}
        self._loop_lag = Histogram(LAG_SECONDS)
        self._started_at = started_at

    def observe(self, row: Row) -> None:
        """Count one closed request or one call refused at the edge."""
        series = self._series.get((row.upstream, row.service_class))
        if series is not None:
            series.observe(row)
        elif row.upstream or row.refused is not None:
            self._series[self._known(row.upstream, row.service_class)].observe(row)
        else:
            self._count_invalid(row.code or OTHER)
        if row.replica is not None:
            self._observe_replica(row, row.replica)

    def observe_output(self, replica: str, problem: str) -> None:
        """``replica`` wrote an answer that is not as it should be."""
        counted = self._replica(replica).output_problems
        counted[problem] = counted.get(problem, 0) + 1

    def observe_lag(self, lag_s: float) -> None:
        """``lag_s``: how late a timer of the loop fired (R16)."""
        self._loop_lag.observe(lag_s)

    def serve(self, upstreams: Iterable[str], classes: Iterable[str]) -> None:
        """Count newly configured names from here on. Series of removed names stay: counters never fall."""
        for upstream in (*upstreams, OTHER):
            for service_class in (*classes, OTHER):
                self._series.setdefault((upstream, service_class), Series())

    def snapshot(self, view: dict[str, Any], records_lost: int) -> Snapshot:
        """Everything counted since the start, with ``view`` (``Path.view(now)``) for the gauges."""
        return Snapshot(
            [series.data(*names) for names, series in self._series.items() if series.requests or OTHER not in names],
            [
                ReplicaData(name, each.reserved_slots, each.used_tokens, list(each.output_problems.items()))
                for name, each in self._replicas.items()
            ],
            list(self._invalid.items()),
            self._loop_lag.data(),
            self._started_at,
            records_lost,
            view,
        )

    def _observe_replica(self, row: Row, name: str) -> None:
        """Replica names come from the configuration alone, so their number is bounded."""
        replica = self._replica(name)
        replica.reserved_slots += row.reserved_slots
        replica.used_tokens += row.sequences * row.prompt_tokens + row.output_tokens

    def _replica(self, name: str) -> ReplicaSum:
        found = self._replicas.get(name)
        if found is None:
            found = self._replicas[name] = ReplicaSum()
        return found

    def _known(self, upstream: str, service_class: str) -> tuple[str, str]:
        for names in ((upstream, OTHER), (OTHER, service_class)):
            if names in self._series:
                return names
        return OTHER, OTHER

    def _count_invalid(self, code: str) -> None:
        if code not in self._invalid and len(self._invalid) >= INVALID_CODES:
            code = OTHER
        self._invalid[code] = self._invalid.get(code, 0) + 1
