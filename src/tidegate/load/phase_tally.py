"""What the workers of a phase have told so far."""

from __future__ import annotations

from collections import Counter, deque

from tidegate.load.crew_messages import Batch, Finished
from tidegate.load.gap_counts import GapCounts
from tidegate.load.phase import Phase
from tidegate.load.played import Played
from tidegate.load.progress import Progress
from tidegate.load.sample import Sample
from tidegate.simulate.quantile import quantile

RECENT_S = 10.0
"""What is shown while it runs is of so many last seconds."""


class PhaseTally:
    """Fed by the crew. Times are seconds since the run began."""

    def __init__(self, phase: Phase, target: str, workers: int, began_s: float, zero: float) -> None:
        """``zero``: the clock's time when the run began."""
        self._zero = zero
        self._told_s = began_s
        """When the last batch was made."""
        self._phase = phase
        self._target = target
        self._began_s = began_s
        self._counts = [(0, 0, 0)] * workers
        """Due, sent and in flight, by worker."""
        self._outcomes: Counter[str] = Counter()
        self._samples: list[Sample] = []
        self._wake_lags_s: list[float] = []
        self._recent: deque[Sample] = deque()
        self._marks: deque[tuple[float, int, int]] = deque([(began_s, 0, 0)])
        """When, and what was due and sent by then."""

    def add(self, worker: int, batch: Batch) -> None:
        self._counts[worker] = batch.due, batch.sent, batch.in_flight
        self._told_s = max(self._told_s, batch.at - self._zero)
        self._samples += batch.samples
        self._wake_lags_s += batch.wake_lags_s
        self._recent += batch.samples
        self._outcomes.update([sample.outcome.value for sample in batch.samples])

    def progress(self, now_s: float) -> Progress:
        due, sent, in_flight = (sum(counts) for counts in zip(*self._counts, strict=True))
        due_rate, sent_rate = self._rates(due, sent)
        while self._recent and self._recent[0].ended_at < now_s - RECENT_S:
            self._recent.popleft()
        answered = [sample for sample in self._recent if sample.is_answered]
        ttft = sorted(sample.ttft_s for sample in answered if sample.first_at)
        e2e = sorted(sample.e2e_s for sample in answered)
        lags = sorted(_lags(self._phase, self._recent))
        return Progress(
            phase=self._phase.name,
            target=self._target,
            elapsed_s=max(0.0, now_s - self._began_s),
            duration_s=self._phase.duration_s,
            due=due,
            sent=sent,
            in_flight=in_flight,
            outcomes=dict(self._outcomes),
            due_rate_per_s=due_rate,
            sent_rate_per_s=sent_rate,
            ttft_p50_s=_quantile(ttft, 0.5),
            ttft_p99_s=_quantile(ttft, 0.99),
            e2e_p50_s=_quantile(e2e, 0.5),
            e2e_p99_s=_quantile(e2e, 0.99),
            lag_p99_s=_quantile(lags, 0.99),
        )

    def played(self, finished: list[Finished], stopped_s: float | None) -> Played:
        """``stopped_s``: when it was ended early; None: it was not."""
        gaps, token_gaps = GapCounts(), GapCounts()
        for part in finished:
            gaps.merge(part.gaps)
            token_gaps.merge(part.token_gaps)
        samples = sorted(self._samples, key=lambda sample: sample.due_at)
        ended_s = max((sample.ended_at for sample in samples), default=self._began_s)
        return Played(
            phase=self._phase.name,
            target=self._target,
            began_s=self._began_s,
            ended_s=ended_s,
            sending_s=self._sending_s(ended_s, stopped_s),
            samples=samples,
            gaps=gaps,
            token_gaps=token_gaps,
            cpu_s=sum(part.cpu_s for part in finished),
            busiest_share=max(part.busy_share for part in finished),
            lags_s=_lags(self._phase, samples),
            wake_lags_s=self._wake_lags_s,
        )

    def _rates(self, due: int, sent: int) -> tuple[float | None, float | None]:
        marks, told_s = self._marks, self._told_s
        if told_s > marks[-1][0]:
            marks.append((told_s, due, sent))
        while len(marks) > 2 and marks[1][0] < told_s - RECENT_S:
            marks.popleft()
        since_s, due_before, sent_before = marks[0]
        span_s = told_s - since_s
        if span_s <= 0:
            return None, None
        return (due - due_before) / span_s, (sent - sent_before) / span_s

    def _sending_s(self, ended_s: float, stopped_s: float | None) -> float:
        phase = self._phase
        sending_s = phase.duration_s
        if phase.count is not None and phase.users is not None and len(self._samples) >= phase.count:
            sending_s = min(sending_s, ended_s - self._began_s)
        if stopped_s is not None:
            sending_s = min(sending_s, stopped_s - self._began_s)
        return max(0.0, sending_s)


def _lags(phase: Phase, samples: list[Sample] | deque[Sample]) -> list[float]:
    """Of open loops: a user of a closed one sends when it is free."""
    return [sample.lag_s for sample in samples if sample.sent_at] if phase.users is None else []


def _quantile(ordered: list[float], share: float) -> float | None:
    return quantile(ordered, share) if ordered else None
