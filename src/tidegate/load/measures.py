"""From samples to figures: exact, in a few passes over lists (a million samples take some seconds).

``definitions`` says in words what each figure means; where the two differ, this file is wrong.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence

from tidegate.load.client_outcome import ClientOutcome
from tidegate.load.distribution import distribution
from tidegate.load.gap_counts import GapCounts, value_of
from tidegate.load.part_measures import part_figures, throughput_tokens
from tidegate.load.phase import Phase
from tidegate.load.phase_figures import PartFigures, PhaseFigures
from tidegate.load.plan import Plan
from tidegate.load.played import Played
from tidegate.load.prompt_lengths import by_length
from tidegate.load.sample import Sample
from tidegate.load.sending_span import SendingSpan
from tidegate.load.time_slices import moment_width_s, moments, recovered_in_s, slice_width_s
from tidegate.load.validity import problems

GAP_SHARES = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "p999": 0.999}


def measure(phase: Phase, played: Sequence[Played], plan: Plan) -> PhaseFigures:
    """``played``: one target's turns of ``phase``, at least one. They count as one phase of their lengths together."""
    spans = [SendingSpan(turn.began_s, turn.began_s + sending_s(turn, phase, len(played))) for turn in played]
    samples = [sample for turn in played for sample in turn.samples]
    duration_s = sum(span.length_s for span in spans)
    slice_s = slice_width_s(duration_s, sum(sample.is_answered for sample in samples))
    moment_s = moment_width_s(duration_s)
    whole = part_figures(samples, spans, slice_s, plan)

    def figures_of(part: list[Sample]) -> PartFigures:
        return whole if len(part) == len(samples) else part_figures(part, spans, slice_s, plan)

    gaps, token_gaps = GapCounts(), GapCounts()
    for turn in played:
        gaps.merge(turn.gaps.buckets.items())
        token_gaps.merge(turn.token_gaps.buckets.items())
    return PhaseFigures(
        phase=phase.name,
        kind=phase.kind.value,
        target=played[0].target,
        began_s=min(turn.began_s for turn in played),
        duration_s=duration_s,
        users=phase.users,
        meant_rate_per_s=phase.rate_per_s,
        due_rate_per_s=_rate(len(samples), duration_s),
        sent_rate_per_s=_rate(whole.due - whole.outcomes.get(ClientOutcome.UNSENT, 0), duration_s),
        answered_per_s=_rate(sum(_came_inside(turn.samples, span) for turn, span in _pairs(played, spans)), duration_s),
        output_tokens_per_s=_rate(
            sum(throughput_tokens(turn.samples, span) for turn, span in _pairs(played, spans)), duration_s
        ),
        all=whole,
        labels=_split(samples, lambda sample: sample.label, figures_of),
        tenants=_split(samples, lambda sample: sample.tenant, figures_of),
        replicas=dict(Counter(sample.replica for sample in samples if sample.replica).most_common()),
        codes=_codes(samples),
        inter_chunk=_gap_quantiles(gaps),
        inter_token=_gap_quantiles(token_gaps),
        lag=distribution(_lags(phase, played)),
        generator_cpu_s=sum(turn.cpu_s for turn in played),
        generator_busiest_share=max(turn.busiest_share for turn in played),
        recovered_in_s=recovered_in_s(phase, played),
        watched_after_spike_s=None if phase.spike is None else max(0.0, duration_s / len(played) - phase.spike[1]),
        moments=[moment for turn, span in _pairs(played, spans) for moment in moments(turn.samples, span, moment_s)],
        moment_s=moment_s,
        slice_s=slice_s,
        lengths=by_length(samples),
        gap_buckets=[(value_of(bucket), count) for bucket, count in sorted(gaps.buckets.items())],
        token_sources=_token_sources(samples),
        invalid=_invalid(phase, played),
    )


def sending_s(turn: Played, phase: Phase, turns: int) -> float:
    """For how long asks were sent in ``turn``, one of ``turns`` equal ones."""
    if turn.sending_s > 0:
        return turn.sending_s
    length_s = phase.duration_s / turns
    is_counted = phase.count is not None
    return min(length_s, turn.ended_s - turn.began_s) if is_counted else length_s


def _pairs(played: Sequence[Played], spans: Sequence[SendingSpan]) -> Iterable[tuple[Played, SendingSpan]]:
    return zip(played, spans, strict=True)


def _rate(number: float, duration_s: float) -> float:
    return number / duration_s if duration_s > 0 else 0.0


def _came_inside(samples: Iterable[Sample], span: SendingSpan) -> int:
    return sum(sample.is_answered and sample.ended_at <= span.end_s for sample in samples)


def _split(
    samples: Sequence[Sample],
    key: Callable[[Sample], str],
    figures: Callable[[list[Sample]], PartFigures],
) -> dict[str, PartFigures]:
    parts: defaultdict[str, list[Sample]] = defaultdict(list)
    for sample in samples:
        parts[key(sample)].append(sample)
    named = {name: part for name, part in sorted(parts.items()) if name}
    return {name: figures(part) for name, part in named.items()}


def _codes(samples: Iterable[Sample]) -> dict[str, int]:
    found = Counter(
        sample.code or (str(sample.status) if sample.status >= 400 else sample.outcome.value)
        for sample in samples
        if not sample.is_answered and sample.outcome is not ClientOutcome.UNSENT
    )
    return dict(found.most_common())


def _gap_quantiles(gaps: GapCounts) -> dict[str, float]:
    found = {name: gaps.quantile(share) for name, share in GAP_SHARES.items()}
    return {name: value for name, value in found.items() if value is not None}


def _lags(phase: Phase, played: Sequence[Played]) -> list[float]:
    told = [lag for turn in played for lag in turn.lags_s]
    if told or phase.users is not None:
        return told
    return [sample.lag_s for turn in played for sample in turn.samples if sample.outcome is not ClientOutcome.UNSENT]


def _token_sources(samples: Iterable[Sample]) -> dict[str, int]:
    found = Counter("usage" if sample.is_counted else "chunks" for sample in samples if sample.is_answered)
    return dict(found)


def _invalid(phase: Phase, played: Sequence[Played]) -> tuple[str, ...]:
    """Each reason once, whichever turns it is of."""
    return tuple(dict.fromkeys(reason for turn in played for reason in problems(turn, phase)))
