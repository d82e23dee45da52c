"""What one phase against one target came to."""

from __future__ import annotations

from dataclasses import dataclass, field

from tidegate.load.distribution import Distribution
from tidegate.load.length_figures import LengthFigures


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """One slice of time, for pictures and for the spread of P95. Answers belong to the slice in which they were due."""

    at_s: float
    """Middle of the slice, since the run began."""
    due: int
    sent: int
    answered: int
    shed: int
    errors: int
    degraded: int
    ttft_p50_s: float | None
    ttft_p95_s: float | None
    e2e_p50_s: float | None
    e2e_p95_s: float | None
    e2e_p99_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PartFigures:
    """Of one set of requests: all of a phase, one label, one tenant. ``definitions`` says what each field means."""

    due: int
    outcomes: dict[str, int]
    """By ``ClientOutcome``; their sum is ``due``."""
    late: int
    """Answered, but not within the objective."""
    error_rate: float
    """Of what was sent, without those that must be refused and were. So are the other rates."""
    timeout_rate: float
    shed_rate: float
    degraded_rate: float
    availability: float
    """SPEC S1-41."""
    goodput_per_s: float
    """Whole answers within their objective that came while asks were sent, per second."""
    goodput_share: float
    """Of those that were to be answered."""
    ttft: Distribution | None
    tpot: Distribution | None
    e2e: Distribution | None
    """From sending."""
    scheduled_e2e: Distribution | None
    """From when they were due."""
    worst_gap: Distribution | None
    """The worst gap of each stream."""
    queue: Distribution | None
    """In the gateway's queue, by its own word; None: the target does not say."""
    model_time: Distribution | None
    """E2E without that queue time (SPEC S1-58)."""
    p95_std_s: float | None
    """Standard deviation of the P95 of E2E over slices of the phase."""
    prompt_tokens: int
    output_tokens: int
    counted_share: float
    """Of answers, how many had their tokens counted by the engine; of the others chunks were counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseFigures:
    phase: str
    kind: str
    target: str
    began_s: float
    duration_s: float
    """For which asks were sent."""
    users: int | None
    meant_rate_per_s: float | None
    due_rate_per_s: float
    """What the plan asked for."""
    sent_rate_per_s: float
    """What the generator achieved."""
    answered_per_s: float
    """Successful answers that came while asks were sent, per second (QPS of SPEC S1-49)."""
    output_tokens_per_s: float
    all: PartFigures
    labels: dict[str, PartFigures] = field(default_factory=dict)
    tenants: dict[str, PartFigures] = field(default_factory=dict)
    replicas: dict[str, int] = field(default_factory=dict)
    codes: dict[str, int] = field(default_factory=dict)
    """Of errors and refusals."""
    inter_chunk: dict[str, float] = field(default_factory=dict)
    """p50, p95, p99, p999 of the times between reads with a part of an answer."""
    inter_token: dict[str, float] = field(default_factory=dict)
    """The same per token: each gap divided by the tokens that its read brought."""
    lag: Distribution | None = None
    """How late the generator sent what was due."""
    generator_cpu_s: float = 0.0
    generator_busiest_share: float = 0.0
    spike: tuple[float, float] | None = None
    """Begin and end of the spike, seconds from the phase's beginning."""
    recovered_in_s: float | None = None
    """After a spike: until P95 and errors were back at what they were before it; None: no spike, or never back."""
    watched_after_spike_s: float | None = None
    """For how long the phase went on after its spike; None: no spike."""
    moments: list[Moment] = field(default_factory=list)
    moment_s: float = 0.0
    """Width of a moment."""
    slice_s: float = 0.0
    """Width of the slices of ``p95_std_s``."""
    lengths: list[LengthFigures] = field(default_factory=list)
    """Latency over the length of the prompt, shortest first."""
    gap_buckets: list[tuple[float, int]] = field(default_factory=list)
    """Inter-chunk gaps: middle of the bucket in seconds, count."""
    token_sources: dict[str, int] = field(default_factory=dict)
    """Answers by who counted their tokens: ``usage`` or ``chunks``."""
    invalid: tuple[str, ...] = ()
    """Why the figures do not tell about the target: the generator lagged, was too busy, or sent too little."""
