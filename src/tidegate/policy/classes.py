"""Which service class a request belongs to, and what that class may ask for.

A prompt longer than ``long_threshold_tokens`` is class ``long`` (SPEC S0-31: class L). A client may
name a class itself, but never one that its prompt's length excludes: a hint can step down, not up.
"""

from __future__ import annotations

from dataclasses import dataclass, field

INTERACTIVE = "interactive"
LONG = "long"
BATCH = "batch"
OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassConfig:
    """One class. Weights share the dispatched prompt tokens between classes that wait."""

    weight: float = 1.0
    max_wait_s: float = 10.0
    """Longest stay in the queue, whatever the client would bear (S3-09)."""
    ttft_slo_s: float | None = None
    """Objective for the first byte of a stream. What would miss it is refused early, not answered late. None: the
    client's own limits alone count."""
    queue_share: float = 1.0
    """Part of the queue's three bounds that this class may fill (S0-38)."""

    def __post_init__(self) -> None:
        if self.weight <= 0 or self.max_wait_s <= 0 or not 0 < self.queue_share <= 1:
            raise ValueError(f"a class needs weight > 0, max_wait_s > 0 and 0 < queue_share <= 1: {self}")
        if self.ttft_slo_s is not None and self.ttft_slo_s <= 0:
            raise ValueError(f"a class needs ttft_slo_s > 0, or none: {self}")


def _default_classes() -> dict[str, ClassConfig]:
    return {
        INTERACTIVE: ClassConfig(weight=4.0),
        LONG: ClassConfig(weight=1.0, queue_share=0.5),
        BATCH: ClassConfig(weight=0.25, max_wait_s=60.0, queue_share=0.5),
        OTHER: ClassConfig(weight=1.0, queue_share=0.25),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassesConfig:
    long_threshold_tokens: int = 1024
    classes: dict[str, ClassConfig] = field(default_factory=_default_classes)

    def __post_init__(self) -> None:
        if self.long_threshold_tokens < 1:
            raise ValueError(f"classes.long_threshold_tokens must be at least 1, not {self.long_threshold_tokens}")
        missing = {INTERACTIVE, LONG} - self.classes.keys()
        if missing:
            raise ValueError(f"classes must hold {sorted(missing)}")


def classify(config: ClassesConfig, prompt_tokens: int, hint: str | None) -> str:
    """The class of a request; an unknown hint counts as none."""
    if hint is None or hint == INTERACTIVE or hint not in config.classes:
        return LONG if prompt_tokens > config.long_threshold_tokens else INTERACTIVE
    return hint
