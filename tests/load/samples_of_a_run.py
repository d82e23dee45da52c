"""Made-up runs that look like real ones: lognormal times, a spike, a slow tail, every kind of ending."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from tidegate.load.client_outcome import ANSWERED, ERRORS, ClientOutcome
from tidegate.load.distribution import distribution
from tidegate.load.gap_counts import GapCounts, value_of
from tidegate.load.phase_figures import Moment, PartFigures, PhaseFigures
from tidegate.load.played import Played
from tidegate.load.prompt_lengths import by_length
from tidegate.load.result import Result
from tidegate.load.sample import Sample
from tidegate.load.verdict import Verdict

OK, SHED, ERROR = ClientOutcome.OK, ClientOutcome.SHED, ClientOutcome.ERROR


@dataclass(frozen=True, kw_only=True)
class Shape:
    """One phase to be made up."""

    name: str
    kind: str = "load"
    duration_s: float = 60.0
    rate_per_s: float = 20.0
    users: int | None = None
    spike: tuple[float, float] | None = None
    ttft_s: float = 0.2
    stretch: float = 1.0
    """Of all times: a busier server."""
    endings: dict[ClientOutcome, float] = field(default_factory=dict)
    """Shares; the rest is answered."""
    labels: Sequence[str] = ("chat",)
    tenants: Sequence[str] = ("",)


def played(shape: Shape, target: str = "tidegate", began_s: float = 0.0, seed: int = 1) -> Played:
    """Equal seeds give equal runs."""
    draw = random.Random(f"{seed} {shape.name} {target}")
    gaps, at = GapCounts(), 0.0
    samples: list[Sample] = []
    while True:
        burst = 2.0 if shape.spike and shape.spike[0] <= at < shape.spike[1] else 1.0
        at += draw.expovariate(shape.rate_per_s * burst)
        if at >= shape.duration_s:
            break
        samples.append(_sample(shape, target, (len(samples), began_s + at), burst, draw, gaps))
    ended = max((sample.ended_at for sample in samples), default=began_s + shape.duration_s)
    return Played(
        phase=shape.name,
        target=target,
        began_s=began_s,
        ended_s=ended,
        samples=samples,
        gaps=gaps,
        token_gaps=gaps,
        cpu_s=len(samples) * 0.0007,
        busiest_share=0.21,
        lags_s=[sample.lag_s for sample in samples],
    )


def _sample(
    shape: Shape, target: str, which: tuple[int, float], burst: float, draw: random.Random, gaps: GapCounts
) -> Sample:
    index, due = which
    sent = due + draw.expovariate(2000)
    outcome = _ending(shape, draw)
    queue = draw.expovariate(8.0) * burst if target == "tidegate" else 0.0
    ttft = draw.lognormvariate(0, 0.35) * shape.ttft_s * shape.stretch * burst + queue
    gap = 0.02 * shape.stretch * draw.lognormvariate(0, 0.2)
    tokens, prompt = draw.randint(16, 96), round(120 * draw.lognormvariate(0, 1.2))
    ttft += prompt / 8000
    long = draw.random() < 0.02
    sample = Sample(
        phase=shape.name,
        target=target,
        index=index,
        label=draw.choice(shape.labels),
        tenant=draw.choice(shape.tenants),
        meant_tokens=prompt,
        due_at=due,
        sent_at=sent,
        ended_at=sent + 0.004,
        outcome=outcome,
        status=200 if outcome in ANSWERED else 503 if outcome is SHED else 500,
        code="" if outcome in ANSWERED else "queue_full" if outcome is SHED else outcome.value,
    )
    if outcome in ANSWERED:
        stretch = 4.0 if long else 1.0
        sample.first_at = sent + ttft * stretch
        sample.last_at = sample.ended_at = sample.first_at + gap * stretch * tokens
        sample.output_tokens, sample.chunks, sample.is_counted = tokens, tokens, True
        sample.queue_s, sample.replica = queue, f"replica-{index % 2}"
        for _ in range(8):
            gaps.add(gap * draw.lognormvariate(0, 0.5) * (12 if draw.random() < 0.01 else 1))
    elif outcome is ClientOutcome.TIMEOUT:
        sample.ended_at = sent + 30.0
    return sample


def _ending(shape: Shape, draw: random.Random) -> ClientOutcome:
    point = draw.random()
    for ending, share in shape.endings.items():
        point -= share
        if point < 0:
            return ending
    return OK


def figures(shape: Shape, of: Played) -> PhaseFigures:
    """Near enough to what a run measures, for pictures."""
    samples = of.samples
    whole = part(samples, shape)
    labels = {label: [each for each in samples if each.label == label] for label in sorted(set(shape.labels))}
    tenants = {tenant: [each for each in samples if each.tenant == tenant] for tenant in shape.tenants if tenant}
    return PhaseFigures(
        phase=shape.name,
        kind=shape.kind,
        target=of.target,
        began_s=of.began_s,
        duration_s=shape.duration_s,
        users=shape.users,
        meant_rate_per_s=None if shape.users else shape.rate_per_s,
        due_rate_per_s=len(samples) / shape.duration_s,
        sent_rate_per_s=len(samples) / shape.duration_s,
        answered_per_s=sum(each.is_answered for each in samples) / shape.duration_s,
        output_tokens_per_s=sum(each.output_tokens for each in samples) / shape.duration_s,
        all=whole,
        labels={name: part(each, shape) for name, each in labels.items()},
        tenants={name: part(each, shape) for name, each in tenants.items()},
        replicas=_counts(each.replica for each in samples),
        codes=_counts(each.code for each in samples),
        inter_chunk=_four(of.gaps),
        inter_token=_four(of.token_gaps),
        lag=distribution(of.lags_s),
        generator_cpu_s=of.cpu_s,
        generator_busiest_share=of.busiest_share,
        spike=shape.spike,
        moment_s=max(shape.duration_s / 30, 1.0),
        recovered_in_s=4.0 if shape.spike else None,
        moments=_moments(shape, of),
        lengths=by_length(samples),
        gap_buckets=[(value_of(bucket), count) for bucket, count in sorted(of.gaps.buckets.items())],
        token_sources={"usage": sum(each.is_counted for each in samples)},
    )


def _counts(texts: Iterable[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for text in texts:
        if text:
            found[text] = found.get(text, 0) + 1
    return found


def _four(gaps: GapCounts) -> dict[str, float]:
    shares = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "p999": 0.999}
    return {name: found for name, share in shares.items() if (found := gaps.quantile(share)) is not None}


def part(samples: Sequence[Sample], shape: Shape) -> PartFigures:
    answered = [each for each in samples if each.is_answered]
    e2e = distribution(each.e2e_s for each in answered)
    outcomes = _counts(each.outcome.value for each in samples)
    due = len(samples)
    late = sum(each.e2e_s > 3 for each in answered)
    shares = {name: outcomes.get(name, 0) / due if due else 0.0 for name in ("timeout", "shed", "degraded")}
    return PartFigures(
        due=due,
        outcomes=outcomes,
        late=late,
        error_rate=sum(each.outcome in ERRORS for each in samples) / due if due else 0.0,
        timeout_rate=shares["timeout"],
        shed_rate=shares["shed"],
        degraded_rate=shares["degraded"],
        availability=len(answered) / due if due else 1.0,
        goodput_per_s=(len(answered) - late) / shape.duration_s,
        goodput_share=(len(answered) - late) / due if due else 0.0,
        ttft=distribution(each.ttft_s for each in answered),
        tpot=distribution(each.tpot_s for each in answered if each.tpot_s is not None),
        e2e=e2e,
        scheduled_e2e=distribution(each.scheduled_e2e_s for each in answered),
        worst_gap=distribution(each.tpot_s * 3 for each in answered if each.tpot_s is not None),
        queue=distribution(each.queue_s for each in answered if each.queue_s is not None),
        model_time=distribution(each.e2e_s - (each.queue_s or 0.0) for each in answered),
        p95_std_s=None if e2e is None else e2e.std / 4,
        prompt_tokens=120 * len(answered),
        output_tokens=sum(each.output_tokens for each in answered),
        counted_share=1.0 if answered else 0.0,
    )


def _moments(shape: Shape, of: Played) -> list[Moment]:
    width = max(shape.duration_s / 30, 1.0)
    found = []
    for index in range(int(shape.duration_s / width)):
        low = of.began_s + index * width
        due = [each for each in of.samples if low <= each.due_at < low + width]
        answered = [each for each in due if each.is_answered]
        ttft, e2e = distribution(each.ttft_s for each in answered), distribution(each.e2e_s for each in answered)
        found.append(
            Moment(
                at_s=low + width / 2,
                due=len(due),
                sent=len(due),
                answered=len(answered),
                shed=sum(each.outcome is SHED for each in due),
                errors=sum(each.outcome in ERRORS for each in due),
                degraded=sum(each.outcome is ClientOutcome.DEGRADED for each in due),
                ttft_p50_s=ttft.p50 if ttft else None,
                ttft_p95_s=ttft.p95 if ttft else None,
                e2e_p50_s=e2e.p50 if e2e else None,
                e2e_p95_s=e2e.p95 if e2e else None,
                e2e_p99_s=e2e.p99 if e2e else None,
            )
        )
    return found


THREE_PHASES = (
    Shape(name="single", kind="single", duration_s=40.0, rate_per_s=1.2, users=1, ttft_s=0.15),
    Shape(name="step 50", kind="step", duration_s=60.0, rate_per_s=18.0, users=50, stretch=1.1),
    Shape(name="step 200", kind="step", duration_s=60.0, rate_per_s=38.0, users=200, stretch=1.8),
    Shape(
        name="step 500",
        kind="step",
        duration_s=60.0,
        rate_per_s=41.0,
        users=500,
        stretch=5.5,
        endings={SHED: 0.18, ERROR: 0.01, ClientOutcome.TIMEOUT: 0.004},
    ),
    Shape(
        name="burst",
        kind="burst",
        duration_s=90.0,
        rate_per_s=20.0,
        spike=(30.0, 45.0),
        endings={SHED: 0.05, ClientOutcome.DEGRADED: 0.03},
    ),
    Shape(
        name="soak",
        kind="soak",
        duration_s=300.0,
        rate_per_s=15.0,
        endings={ClientOutcome.EXPECTED: 0.05, ClientOutcome.DEGRADED: 0.01, ERROR: 0.0006},
        labels=("chat", "rag", "over-long"),
        tenants=("alice", "bob", "noisy"),
    ),
)


def a_run(
    shapes: Sequence[Shape] = THREE_PHASES, targets: Sequence[str] = ("tidegate",), seed: int = 1
) -> tuple[Result, list[Played]]:
    """A finished run of ``shapes`` against each of ``targets``; the second of them is slower."""
    parts, phases, at = [], [], 0.0
    for shape in shapes:
        for index, target in enumerate(targets):
            slower = shape if index == 0 else _slower(shape)
            parts.append(played(slower, target, at, seed))
            phases.append(figures(slower, parts[-1]))
            at += shape.duration_s + 5.0
    return _result(phases, list(targets), seed), parts


def _slower(shape: Shape) -> Shape:
    return replace(shape, stretch=shape.stretch * 1.6)


def _result(phases: list[PhaseFigures], targets: list[str], seed: int) -> Result:
    return Result(
        plan="three-phase",
        seed=seed,
        targets=targets,
        began="2026-11-30T09:00:00+00:00",
        command=f"tidegate load http://127.0.0.1:8000/v1 --plan three-phase --gates acceptance --seed {seed}",
        manifest={"plan": {"sha256": "5f2c…"}, "generator": {"processes": 2, "tidegate": "0.1.0"}},
        phases=phases,
        verdicts=[
            Verdict(name="P50", row="S1-46", bar="P50 ≤ 2 s", measured="1.31 s (soak)", passed=True),
            Verdict(
                name="P99",
                row="S1-48",
                bar="P99 ≤ 10 s",
                measured="12.9 s (step 500)",
                passed=False,
                why="Look at the time in the queue: 500 users are past the knee.",
            ),
            Verdict(
                name="peak",
                row="S1-53",
                bar="stable at 1.5 × the planned peak",
                measured="",
                passed=None,
                why="Say what the peak is: --planned-peak R.",
            ),
        ],
        notes=["Records as JSON lines."],
    )
