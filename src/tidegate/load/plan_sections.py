"""What may stand in a plan file."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from tidegate.config.section import Section
from tidegate.load.ask import PATIENCE_S

Tokens = Annotated[int, Field(ge=1, le=10_000_000)]
Seconds = Annotated[float, Field(gt=0)]
PerSecond = Annotated[float, Field(ge=0)]
Share = Annotated[float, Field(ge=0, le=1)]
Weight = Annotated[float, Field(gt=0)]
Pair = Annotated[list[Annotated[float, Field(ge=0)]], Field(min_length=2, max_length=2)]
TRACES = Literal["azure-conv", "azure-code", "mooncake"]


def _in(key: str, kinds: type | tuple[type, ...], words: str) -> BeforeValidator:
    """A bare value stands for a section with this one key."""

    def put(value: Any) -> Any:
        if isinstance(value, dict | Section):
            return value
        if isinstance(value, bool) or not isinstance(value, kinds):
            raise ValueError(f"must be {words}, got {value!r}")
        return {key: value}

    return BeforeValidator(put)


def _mix(value: Any) -> Any:
    return {value: 1.0} if isinstance(value, str) else value


class LogNormalSection(Section):
    median: Annotated[float, Field(gt=0)]
    """Half of the draws are below it."""
    sigma: Annotated[float, Field(ge=0, le=5)] = 0.8
    """Standard deviation of the logarithm."""
    least: Tokens = 1
    """Shorter draws are put on it."""
    most: Tokens = 10_000_000
    """Longer draws are put on it."""


class LengthSection(Section):
    """A number, or one of these keys."""

    fixed: Tokens | None = None
    """Always so many."""
    uniform: Annotated[list[Tokens], Field(min_length=2, max_length=2)] | None = None
    """From the first to the second, both included."""
    lognormal: LogNormalSection | None = None
    """Many short ones and a long tail."""
    values: Annotated[list[Tokens], Field(min_length=1)] | None = None
    """Drawn from this list."""
    trace: TRACES | None = None
    """Drawn from this trace's lengths (or its look-alike's; see docs/simulation.md)."""
    mix: Annotated[list[MixedLengthSection], Field(min_length=1)] | None = None
    """Several of these, each with a weight."""


class MixedLengthSection(LengthSection):
    weight: Weight = 1.0
    """Of this part among the others."""


Length = Annotated[
    LengthSection, _in("fixed", int, "a whole number of tokens, or a mapping such as {uniform: [100, 300]}")
]


class PrefixSection(Section):
    tokens: Tokens
    """Of each system prompt; they come on top of ``prompt_tokens``."""
    count: Annotated[int, Field(ge=1)] = 1
    """Different ones."""
    share: Share = 1.0
    """Of the requests, how many have one."""


class ConversationSection(Section):
    turns: Length
    """Of one conversation."""
    open_sessions: Annotated[int, Field(ge=1)] = 64
    """Conversations that take turns; two turns of one are so many requests apart."""


class WorkloadSection(Section):
    """One kind of request; its name is its label in reports."""

    prompt_tokens: Length | None = None
    """Of the prompt with its nonce, without its system prompt; of a conversation the new words of each turn."""
    output_tokens: Length = LengthSection(fixed=64)
    """The bound that is sent (``max_tokens``)."""
    prompts: str | None = None
    """JSON lines of ``prompt`` or ``messages``, if wanted ``max_tokens`` and ``label``; in place of made-up words."""
    text: str | None = None
    """The same text each time, in place of made-up words."""
    same: bool = False
    """The same made-up words each time."""
    nonce: Literal["start", "end", "none"] | None = None
    """Words that no other request has: at the start against every cache, at the end against caches of whole results."""
    system: PrefixSection | None = None
    """System prompts that requests share."""
    conversation: ConversationSection | None = None
    """Requests are turns that repeat all before them, under one session."""
    tenant: str = ""
    """For the report, and for its key where one is given."""
    headers: dict[str, str] = Field(default_factory=dict)
    """Further headers."""
    deadline_ms: Annotated[int, Field(ge=1)] | None = None
    """Told to the target with each request."""
    stream_share: Share = 1.0
    """Of the requests, how many ask for a stream."""
    patience_s: Seconds = PATIENCE_S
    """After so long the client leaves."""
    keeps_text: bool = False
    """Answers are kept and compared (output consistency)."""
    wants_json: bool = False
    """Asks for JSON; another answer is abnormal."""
    refused_with: Annotated[list[str], Field(min_length=1)] | None = None
    """It must be refused with one of these codes (docs/reasons.md); nothing of it is cut then."""


class SpikeSection(Section):
    factor: Annotated[float, Field(gt=0)]
    """Times the rate."""
    window_s: Pair
    """From the first to the second of the phase's seconds."""


class DaySection(Section):
    off_peak_per_s: PerSecond
    """In 18 of the 24 hours."""
    peak_per_s: Annotated[float, Field(gt=0)]
    """At 10:00 and at 20:00."""


class PieceSection(Section):
    for_s: Seconds
    """How long it lasts."""
    from_per_s: PerSecond
    """The rate that it begins with."""
    to_per_s: PerSecond | None = None
    """The rate that it ends with; none: the same."""


class RateSection(Section):
    """A number, or one of these keys; ``spike`` stands beside ``at``."""

    at: Annotated[float, Field(gt=0)] | None = None
    """Requests per second."""
    spike: SpikeSection | None = None
    """For a while a multiple of it."""
    ramp: Pair | None = None
    """From the first to the second rate, in a straight line."""
    day: DaySection | None = None
    """Midnight to midnight within the phase."""
    pieces: Annotated[list[PieceSection], Field(min_length=1)] | None = None
    """Straight lines, one after the other; they say how long the phase is."""


Rate = Annotated[RateSection, _in("at", (int, float), "a number, or a mapping such as {ramp: [1, 5]}")]


class PhaseSection(Section):
    """Has one of ``rate_per_s``, ``users``, ``steps``, ``replay``."""

    name: Annotated[str, Field(min_length=1)]
    """Unique in the plan."""
    send: Annotated[dict[str, Weight], Field(min_length=1), BeforeValidator(_mix)] | None = None
    """A workload's name, or several with their weights."""
    duration_s: Seconds | None = None
    """How long requests are sent."""
    rate_per_s: (
        Annotated[RateSection, _in("at", (int, float), "a number, or a mapping such as {ramp: [1, 5]}")] | None
    ) = None
    """Requests come at their own times, whatever becomes of those before."""
    gaps: Literal["poisson", "even"] | Annotated[float, Field(gt=0)] = "poisson"
    """Between requests that come at their own times: ``poisson``, ``even``, or the shape of a Gamma distribution, which
    is burstier than Poisson below 1."""
    users: Annotated[int, Field(ge=1)] | None = None
    """Each sends its next request when the last one has ended."""
    steps: Annotated[list[Annotated[int, Field(ge=1)]], Field(min_length=1)] | None = None
    """One phase for each number of users, each ``duration_s`` long."""
    count: Annotated[int, Field(ge=1)] | None = None
    """Users stop after so many requests together."""
    replay: str | None = None
    """A file's times and lengths with other words, as ``replay@FILE``."""
    over_long_share: Share = 0.0
    """Of the requests, how many are longer than the context; none where that is not known."""
    kind: Literal["single", "step", "burst", "soak", "load"] | None = None
    """What gates take it for; none: ``step`` for steps, ``burst`` where there is a spike, else ``load``."""


class ObjectiveSection(Section):
    ttft_s: Seconds | None = None
    """To the first token."""
    tpot_s: Seconds | None = None
    """Per token after the first."""
    e2e_s: Seconds | None = None
    """To the end of the answer."""


class PlanSection(Section):
    """A plan file."""

    name: Annotated[str, Field(min_length=1)]
    """Of reports and comparisons."""
    objective: ObjectiveSection = ObjectiveSection()
    """An answer within it counts as good."""
    objectives: dict[str, ObjectiveSection] = Field(default_factory=dict)
    """The same by tenant, or by workload."""
    planned_rate_per_s: Annotated[float, Field(gt=0)] | None = None
    """Load that is planned for; acceptance compares it with the measured peak."""
    real_peak_per_s: Annotated[float, Field(gt=0)] | None = None
    """The highest rate that was seen in production; acceptance looks for a phase at 1.5 times it."""
    gates: str | None = None
    """``acceptance``, ``burst`` or a file of gates, where the command names none."""
    workloads: dict[str, WorkloadSection] = Field(default_factory=dict)
    """Kinds of requests by name."""
    phases: Annotated[list[PhaseSection], Field(min_length=1)]
    """Played in this order."""
