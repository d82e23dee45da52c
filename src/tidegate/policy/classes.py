"""Which service class a request belongs to, and what that class may ask for.

The first that says something decides: a rule of the operator (``class_rules``), the client's own word
(a class, a criticality, OpenAI's ``service_tier``), the length: a prompt longer than
``long_threshold_tokens`` is class ``long`` (SPEC S0-31: class L). A client's word can step down, not up:
it never makes a long prompt interactive.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from tidegate.policy.class_rules import ClassRule
from tidegate.policy.request import Request

INTERACTIVE = "interactive"
LONG = "long"
BATCH = "batch"
OTHER = "other"

CRITICALITIES = {"critical_plus": INTERACTIVE, "critical": INTERACTIVE, "sheddable_plus": BATCH, "sheddable": BATCH}
"""Criticality (Google's SRE book, ch. 21) as a class, for clients that speak it; the operator's classes come first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassConfig:
    """One class. Weights share the dispatched prompt tokens between classes that wait."""

    weight: float = 1.0
    max_wait_s: float = 10.0
    """Longest stay in the queue, whatever the client would bear (S3-09)."""
    ttft_slo_s: float | None = None
    """Objective for the first byte of a stream. What would miss it is refused early, not answered late. None: the
    client's own limits alone count."""
    tpot_slo_s: float | None = None
    """Objective for the mean time per output token of a stream: while it is kept with ease, replicas are given more to
    read ahead. Nobody is refused by it."""
    queue_share: float = 1.0
    """Part of the queue's three bounds that this class may fill (S0-38)."""
    max_share: float = 1.0
    """Most of a replica's sequences, of its KV slots and of its prefill bound that this class holds at once (S0-29).
    One request of the class may run however large it is."""
    floor: float = 0.0
    """Part of a replica's sequences, and of its KV slots, that is kept free for this class and lent to no other
    (S1-05)."""
    yields: bool = False
    """Goes from the queue only when nobody waits whose class does not yield (S1-45)."""

    def __post_init__(self) -> None:
        if self.weight <= 0 or self.max_wait_s <= 0 or not 0 < self.queue_share <= 1:
            raise ValueError(f"a class needs weight > 0, max_wait_s > 0 and 0 < queue_share <= 1: {self}")
        if any(objective is not None and objective <= 0 for objective in (self.ttft_slo_s, self.tpot_slo_s)):
            raise ValueError(f"a class needs ttft_slo_s > 0 and tpot_slo_s > 0, or none: {self}")
        if not 0 <= self.floor <= self.max_share <= 1 or self.max_share == 0:
            raise ValueError(f"a class needs 0 <= floor <= max_share <= 1, and max_share > 0: {self}")


def _default_classes() -> dict[str, ClassConfig]:
    return {
        INTERACTIVE: ClassConfig(weight=4.0),
        LONG: ClassConfig(weight=1.0, max_wait_s=3.0, queue_share=0.5),
        BATCH: ClassConfig(weight=0.25, max_wait_s=60.0, queue_share=0.5, max_share=0.5, yields=True),
        OTHER: ClassConfig(weight=1.0, queue_share=0.25),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassesConfig:
    long_threshold_tokens: int = 1024
    long_counts: Literal["prompt", "total"] = "prompt"
    """What is held against the threshold: the prompt, or prompt and wanted output (``max_tokens``) together."""
    classify: Literal["always", "on_burst"] = "always"
    """When length alone makes a request ``long``: always, or only while a burst lasts (S0-28, S0-29)."""
    rules: tuple[ClassRule, ...] = ()
    """The first that matches decides."""
    classes: dict[str, ClassConfig] = field(default_factory=_default_classes)

    def __post_init__(self) -> None:
        if self.long_threshold_tokens < 1:
            raise ValueError(f"classes.long_threshold_tokens must be at least 1, not {self.long_threshold_tokens}")
        missing = {INTERACTIVE, LONG} - self.classes.keys()
        if missing:
            raise ValueError(f"classes must hold {sorted(missing)}")
        unknown = {rule.service_class for rule in self.rules} - self.classes.keys()
        if unknown:
            raise ValueError(f"class rules name {sorted(unknown)}, which the classes do not hold")
        if sum(each.floor for each in self.classes.values()) > 1:
            raise ValueError("the floors of all classes together must not exceed 1")

    @property
    def headers(self) -> tuple[str, ...]:
        """The headers that a driver reads for the rules, lower-case."""
        return tuple(sorted({rule.header.lower() for rule in self.rules if rule.header is not None}))


def classify(config: ClassesConfig, request: Request, prompt_tokens: int, is_burst: bool) -> str:
    """The class of a request whose prompt is taken to be so long; an unknown hint counts as none."""
    if config.rules:
        for rule in config.rules:
            if rule.matches(request, prompt_tokens):
                return rule.service_class
    hint = request.class_hint
    if hint is not None and hint not in config.classes:
        hint = CRITICALITIES.get(hint)
    if hint is not None and hint != INTERACTIVE and hint in config.classes:
        return hint
    if config.long_counts == "total":
        prompt_tokens += request.max_tokens or 0
    if prompt_tokens > config.long_threshold_tokens and (is_burst or config.classify == "always"):
        return LONG
    return INTERACTIVE
