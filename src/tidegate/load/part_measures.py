"""Figures of one set of requests: a phase, a label, a tenant."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from tidegate.load.client_outcome import ANSWERED, ERRORS, ClientOutcome
from tidegate.load.distribution import distribution
from tidegate.load.phase_figures import PartFigures
from tidegate.load.plan import Objective, Plan
from tidegate.load.sample import Sample
from tidegate.load.sending_span import SendingSpan
from tidegate.load.time_slices import p95_std_s


def part_figures(samples: Sequence[Sample], spans: Sequence[SendingSpan], slice_s: float, plan: Plan) -> PartFigures:
    """``spans``: of the whole phase, turn by turn; ``slice_s``: width of the slices for the spread of P95."""
    outcomes = Counter([sample.outcome for sample in samples])
    answered = [sample for sample in samples if sample.outcome in ANSWERED]
    missed = _late(answered, plan)
    good = [
        sample for sample, late in zip(answered, missed, strict=True) if not late and sample.outcome is ClientOutcome.OK
    ]
    asked = len(samples) - outcomes[ClientOutcome.EXPECTED] - outcomes[ClientOutcome.UNSENT]
    queued = [sample for sample in answered if sample.queue_s is not None]
    duration_s = sum(span.length_s for span in spans)
    streams = [sample for sample in answered if sample.is_stream and sample.first_at]
    return PartFigures(
        due=len(samples),
        outcomes={outcome.value: outcomes[outcome] for outcome in ClientOutcome if outcomes[outcome]},
        late=sum(missed),
        error_rate=_share(sum(outcomes[each] for each in ERRORS), asked),
        timeout_rate=_share(outcomes[ClientOutcome.TIMEOUT], asked),
        shed_rate=_share(outcomes[ClientOutcome.SHED], asked),
        degraded_rate=_share(outcomes[ClientOutcome.DEGRADED], asked),
        availability=_share(len(answered), asked),
        goodput_per_s=_inside(good, spans) / duration_s if duration_s > 0 else 0.0,
        goodput_share=_share(len(good), asked - outcomes[ClientOutcome.UNEXPECTED]),
        ttft=distribution([sample.first_at - sample.sent_at for sample in streams]),
        tpot=distribution([tpot for sample in streams if (tpot := sample.tpot_s) is not None]),
        e2e=distribution([sample.ended_at - sample.sent_at for sample in answered]),
        scheduled_e2e=distribution([sample.ended_at - sample.due_at for sample in answered]),
        worst_gap=distribution([sample.worst_gap_s for sample in streams if sample.reads > 1]),
        queue=distribution(sample.queue_s or 0.0 for sample in queued),
        model_time=distribution(max(0.0, sample.e2e_s - (sample.queue_s or 0.0)) for sample in queued),
        p95_std_s=p95_std_s(answered, slice_s),
        prompt_tokens=sum([sample.prompt_tokens for sample in answered]),
        output_tokens=sum([sample.output_tokens for sample in answered]),
        counted_share=_share(sum([sample.is_counted for sample in answered]), len(answered)),
    )


def _late(answered: Sequence[Sample], plan: Plan) -> list[bool]:
    if not plan.objectives and plan.objective == Objective():
        return [False] * len(answered)
    return [is_late(sample, objective_of(sample, plan)) for sample in answered]


def objective_of(sample: Sample, plan: Plan) -> Objective:
    """The tenant's, else the label's, else the plan's."""
    if not plan.objectives:
        return plan.objective
    own = plan.objectives.get(sample.tenant) if sample.tenant else None
    return own or plan.objectives.get(sample.label) or plan.objective


def is_late(sample: Sample, objective: Objective) -> bool:
    """Of an answer: whether it missed any part of its objective. Times count from when it was due."""
    if objective.e2e_s is not None and sample.scheduled_e2e_s > objective.e2e_s:
        return True
    if objective.ttft_s is not None and sample.first_at and sample.first_at - sample.due_at > objective.ttft_s:
        return True
    tpot_s = sample.tpot_s if objective.tpot_s is not None else None
    return tpot_s is not None and objective.tpot_s is not None and tpot_s > objective.tpot_s


def throughput_tokens(samples: Iterable[Sample], span: SendingSpan) -> float:
    """Output tokens that came until the end of ``span``. Of an answer that ends later, its part of the time."""
    return sum(sample.output_tokens * _part_until(sample, span.end_s) for sample in samples if sample.is_answered)


def _part_until(sample: Sample, end_s: float) -> float:
    if sample.ended_at <= end_s:
        return 1.0
    if not sample.is_stream or sample.last_at <= sample.first_at:
        return 0.0
    return min(1.0, max(0.0, (end_s - sample.first_at) / (sample.last_at - sample.first_at)))


def _inside(samples: Iterable[Sample], spans: Sequence[SendingSpan]) -> int:
    """How many ended before the end of the turn in which they were due."""
    if len(spans) == 1:
        return sum(sample.ended_at <= spans[0].end_s for sample in samples)
    ordered = sorted(samples, key=lambda sample: sample.due_at)
    count, turn, turns = 0, 0, sorted(spans, key=lambda span: span.begin_s)
    for sample in ordered:
        while turn + 1 < len(turns) and sample.due_at >= turns[turn + 1].begin_s:
            turn += 1
        count += sample.ended_at <= turns[turn].end_s
    return count


def _share(part: int, whole: int) -> float:
    return part / whole if whole > 0 else 0.0
