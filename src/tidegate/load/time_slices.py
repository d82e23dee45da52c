"""A phase cut into slices of time: for pictures, for the spread of P95, and for the way back after a spike.

An answer belongs to the slice in which it was due: what somebody met who came then.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from statistics import pstdev

from tidegate.load.client_outcome import ERRORS, ClientOutcome
from tidegate.load.phase import Phase
from tidegate.load.phase_figures import Moment
from tidegate.load.played import Played
from tidegate.load.sample import Sample
from tidegate.load.sending_span import SendingSpan
from tidegate.simulate.quantile import quantile

WIDTHS_S = (1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0)
MOST_MOMENTS = 120
"""Of one phase: a picture has no room for more."""
MEANT_FOR_P95 = 40
LEAST_FOR_P95 = 20
"""Answers in a slice: below them a P95 is the largest."""
LEAST_SLICES = 3
"""A spread of fewer says nothing."""
SLICE_S = 10.0
"""Of ``p95_std_s`` where there are answers enough, as ``tidegate simulate`` has it."""
STEADY_SLICES = 3
"""So many slices in a row as before the spike: it is over."""
P95_TOLERANCE = 1.25
P95_TOLERANCE_S = 0.05
FAILED_TOLERANCE = 0.01
"""What still counts as before: P95s of so few answers scatter by that much."""


def moment_width_s(duration_s: float) -> float:
    return _width_at_least(duration_s / MOST_MOMENTS)


def slice_width_s(duration_s: float, answers: int) -> float:
    """10 s, and more where those hold fewer than 40 answers on average."""
    needed_s = MEANT_FOR_P95 * duration_s / answers if answers else duration_s
    return _width_at_least(max(SLICE_S, needed_s))


def _width_at_least(least_s: float) -> float:
    return next((width for width in WIDTHS_S if width >= least_s * (1 - 1e-9)), WIDTHS_S[-1])


def p95_std_s(answered: Iterable[Sample], slice_s: float) -> float | None:
    """Standard deviation of the P95 of E2E over slices with at least 20 answers; None of fewer than 3 such slices."""
    slices: defaultdict[int, list[float]] = defaultdict(list)
    for sample in answered:
        slices[int(sample.due_at // slice_s)].append(sample.ended_at - sample.sent_at)
    p95s = [quantile(sorted(part), 0.95) for part in slices.values() if len(part) >= LEAST_FOR_P95]
    return pstdev(p95s) if len(p95s) >= LEAST_SLICES else None


def moments(samples: Iterable[Sample], span: SendingSpan, width_s: float) -> list[Moment]:
    """In order of time, those without anything due included."""
    slices: defaultdict[int, list[Sample]] = defaultdict(list)
    for sample in samples:
        slices[max(0, int((sample.due_at - span.begin_s) // width_s))].append(sample)
    last = max(slices, default=-1)
    return [_moment(slices.get(k, []), span.begin_s + (k + 0.5) * width_s) for k in range(last + 1)]


def _moment(samples: Sequence[Sample], at_s: float) -> Moment:
    outcomes = [sample.outcome for sample in samples]
    answered = [sample for sample in samples if sample.is_answered]
    ttft = sorted(sample.ttft_s for sample in answered if sample.is_stream and sample.first_at)
    e2e = sorted(sample.e2e_s for sample in answered)
    return Moment(
        at_s=at_s,
        due=len(samples),
        sent=len(samples) - outcomes.count(ClientOutcome.UNSENT),
        answered=len(answered),
        shed=outcomes.count(ClientOutcome.SHED),
        errors=sum(outcome in ERRORS for outcome in outcomes),
        degraded=outcomes.count(ClientOutcome.DEGRADED),
        ttft_p50_s=_quantile(ttft, 0.5),
        ttft_p95_s=_quantile(ttft, 0.95),
        e2e_p50_s=_quantile(e2e, 0.5),
        e2e_p95_s=_quantile(e2e, 0.95),
        e2e_p99_s=_quantile(e2e, 0.99),
    )


def _quantile(ordered: Sequence[float], share: float) -> float | None:
    return quantile(ordered, share) if ordered else None


def recovered_in_s(phase: Phase, played: Sequence[Played]) -> float | None:
    """From the end of the spike until those who came were served as before it; the longest of all turns."""
    if phase.spike is None:
        return None
    found = [_recovered(turn, phase.spike) for turn in played]
    whole = [each for each in found if each is not None]
    return max(whole) if len(whole) == len(found) else None


def _recovered(turn: Played, spike: tuple[float, float]) -> float | None:
    begin_s, end_s = turn.began_s + spike[0], turn.began_s + spike[1]
    before = [sample for sample in turn.samples if sample.due_at < begin_s]
    after = [sample for sample in turn.samples if sample.due_at >= end_s]
    usual_s = _p95(before)
    if usual_s is None:
        return None
    width_s = _width_at_least(LEAST_FOR_P95 * spike[0] / len(before))
    slices: defaultdict[int, list[Sample]] = defaultdict(list)
    for sample in after:
        slices[int((sample.due_at - end_s) // width_s)].append(sample)
    bound_s = max(usual_s * P95_TOLERANCE, usual_s + P95_TOLERANCE_S)
    bound_failed = _failed_share(before) + FAILED_TOLERANCE
    usual = [_is_usual(slices.get(k, []), bound_s, bound_failed) for k in range(max(slices, default=-1) + 1)]
    for k in range(len(usual) - STEADY_SLICES + 1):
        if all(usual[k : k + STEADY_SLICES]):
            return k * width_s
    return None


def _is_usual(samples: Sequence[Sample], bound_s: float, bound_failed: float) -> bool:
    """A slice in which nobody came shows nothing."""
    p95 = _p95(samples)
    return p95 is not None and p95 <= bound_s and _failed_share(samples) <= bound_failed


def _p95(samples: Iterable[Sample]) -> float | None:
    return _quantile(sorted(sample.scheduled_e2e_s for sample in samples if sample.is_answered), 0.95)


def _failed_share(samples: Sequence[Sample]) -> float:
    """Refused for load counts too: it is not as before."""
    failed = sum(sample.outcome in ERRORS or sample.outcome is ClientOutcome.SHED for sample in samples)
    return failed / len(samples) if samples else 0.0
