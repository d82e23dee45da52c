"""Sections ``shaping`` and ``classes``: the queue in front of the replicas, and who waits in it with whom."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from tidegate.config.quantity import SIZE_TEXT
from tidegate.config.section import Ranged, Section
from tidegate.policy.burst import BurstConfig
from tidegate.policy.class_rules import ClassRule
from tidegate.policy.classes import ClassConfig, ClassesConfig
from tidegate.policy.giants import GiantsConfig
from tidegate.policy.margin import MarginConfig
from tidegate.policy.pacing import PacingConfig
from tidegate.policy.queue import QueueConfig

_CLASSES = ClassesConfig()

Queue = Annotated[
    QueueConfig,
    Ranged(
        max_requests=Field(
            ge=1,
            description="Most waiting requests; about twice the peak rate a second "
            "(alias: VOLC_BUFFER_QUEUE_SIZE, SPEC S0-30).",
        ),
        max_tokens=Field(ge=1, description="Most prompt tokens that wait."),
        max_bytes=(Field(ge=1, description="Most bytes of request bodies that wait."), *SIZE_TEXT),
        max_overtakes=Field(
            ge=0, description="How often later requests that fit may pass one that does not; then it goes first."
        ),
    ),
]

Margin = Annotated[
    MarginConfig,
    Ranged(
        least=Field(gt=0, le=1, description="The margin tunes itself down to this share of a client's deadline."),
        most=Field(gt=0, le=1, description="A predicted wait above this share of the deadline is refused early."),
        late_share=Field(ge=0, le=1, description="Share of late answers above which the margin falls."),
        early_share=Field(ge=0, le=1, description="Share of late answers below which the margin rises."),
        window=Field(ge=1),
        class_share=Field(gt=0, le=1),
    ),
]

ServiceClass = Annotated[
    ClassConfig,
    Ranged(
        weight=Field(gt=0, description="Part of the dispatched prompt tokens, against the other classes that wait."),
        max_wait_s=Field(gt=0),
        ttft_slo_s=Field(gt=0),
        tpot_slo_s=Field(gt=0),
        queue_share=Field(gt=0, le=1),
        max_share=Field(gt=0, le=1),
        floor=Field(ge=0, le=1),
    ),
]

Text = Field(min_length=1, max_length=200)

Rule = Annotated[
    ClassRule,
    Ranged(
        service_class=Text,
        min_prompt_tokens=Field(ge=0),
        max_prompt_tokens=Field(ge=0),
        min_total_tokens=Field(ge=0),
        max_total_tokens=Field(ge=0),
        path=Text,
        tenant=Text,
        model=Text,
        header=Field(pattern=r"^[A-Za-z0-9-]{1,100}$"),
    ),
]

Burst = Annotated[
    BurstConfig,
    Ranged(
        ratio=Field(gt=1),
        window_s=Field(gt=0),
        least_per_s=Field(ge=0),
        usual_s=Field(gt=0),
        calm_s=Field(ge=0),
    ),
]


Giants = Annotated[
    GiantsConfig,
    Ranged(
        enabled=Field(description="Off: a prompt of any size goes when it fits, and stalls those beside it."),
        least_s=Field(gt=0),
        least_tokens=Field(ge=1),
        least_ratio=Field(ge=1),
        quiet_share=Field(ge=0, le=1),
        hold_share=Field(ge=0, lt=1),
    ),
]

_PACING = PacingConfig()


class Pacing(Section):
    """A moment in which requests gather before they go to the engines."""

    enabled: bool = _PACING.enabled
    """Off for engines that batch continuously: it only adds to the first byte (docs/policies/pacing.md)."""
    idle_window_s: Annotated[float, Field(ge=0, le=1)] = _PACING.idle_window_s
    """How long they gather while load is low (SPEC S0-27)."""
    busy_window_s: Annotated[float, Field(ge=0, le=1)] = _PACING.busy_window_s
    """How long they gather while load is high; between the two on a straight line (SPEC S0-27)."""
    low_load_percent: Annotated[int, Field(ge=0, le=99)] = int(100 * _PACING.low_load)
    """Load that counts as low: the fuller of the replicas' sequences and KV slots. What counts as high is
    ``shaping.gpu_utilization_high_percent``."""


class Shaping(Section):
    """A queue bounded three ways, in deadline order, which refuses early what would be late."""

    enabled: bool = True
    """Off (also in ``mode: dev``): one class, no early refusal; the queue stays bounded."""
    queue: Queue = QueueConfig()
    margin: Margin = MarginConfig()
    long_threshold_tokens: Annotated[int, Field(ge=1)] = _CLASSES.long_threshold_tokens
    """Prompts above it are of class ``long`` (alias: VOLC_PRIORITY_THRESHOLD, SPEC S0-31)."""
    long_counts: Literal["prompt", "total"] = _CLASSES.long_counts
    """What is held against the threshold: the prompt, or prompt and wanted output (``max_tokens``) together."""
    classify: Literal["always", "on_burst"] = _CLASSES.classify
    """When length alone makes a request ``long``: always, or only while a burst lasts (SPEC S0-28, S0-29)."""
    rules: tuple[Rule, ...] = ()
    """Put requests into classes by what they are; the first that matches decides, before any word of the client."""
    burst: Burst = BurstConfig()
    """When so many more requests than usual arrive that it counts as a burst (SPEC S0-28)."""
    gpu_utilization_high_percent: Annotated[int, Field(ge=1, le=100)] = 85
    """Load that counts as high, above which the window of ``pacing`` is the short one (alias:
    VOLC_GPU_UTILIZATION_HIGH, SPEC S0-32). No effect while pacing is off."""
    pacing: Pacing = Pacing()
    giants: Giants = GiantsConfig()
    """Prompts that stall everybody beside them wait for a quiet replica (SPEC S0-37)."""


Classes = dict[Annotated[str, Field(min_length=1, max_length=64)], ServiceClass]
DEFAULT_CLASSES = _CLASSES.classes
