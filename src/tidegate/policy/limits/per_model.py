"""What one model may get, however many replicas serve it (SPEC S3-09, S3-10).

A slow model must not use up what a fast one needs, so each has its own rates, its own most requests at
once and its own patience. The most at once is a count that comes back as requests end, since no rate can
bound it; it is 0.8 × the knee that a load test found (S3-12): where throughput stops to grow.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from tidegate.policy.classes import ClassesConfig
from tidegate.policy.ladder import LadderConfig

KNEE_SHARE = 0.8
"""S3-12: the rest is for bursts and long requests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelConfig:
    """One model. None: no bound."""

    requests_per_minute: int | None = None
    """Requests that may begin, of all tenants, out of a bucket that holds a minute's worth and fills steadily."""
    tokens_per_minute: int | None = None
    """Tokens of all tenants together, prompts and answers, out of such a bucket."""
    knee: int | None = None
    """Sequences at once where a load test saw latency take off. 80 % of it, rounded down, run at a time; what comes
    beyond waits (SPEC S3-12)."""
    max_wait_s: dict[str, float] = field(default_factory=dict)
    """Longest wait by class, in place of ``classes.<name>.max_wait_s`` (SPEC S3-09)."""

    def __post_init__(self) -> None:
        bounds = (self.requests_per_minute, self.tokens_per_minute, self.knee)
        if any(bound is not None and bound < 1 for bound in bounds):
            raise ValueError(f"a model's bounds must be at least 1, or none: {bounds}")
        if min(self.max_wait_s.values(), default=1.0) <= 0:
            raise ValueError(f"max_wait_s must be above 0 for every class: {self.max_wait_s}")

    @property
    def concurrency(self) -> int | None:
        """Most sequences at once: floor(0.8 × knee), but at least one."""
        return None if self.knee is None else max(1, int(KNEE_SHARE * self.knee))

    def classes(self, usual: ClassesConfig) -> ClassesConfig:
        """The classes as they wait for this model."""
        if not self.max_wait_s:
            return usual
        own = {
            name: replace(each, max_wait_s=self.max_wait_s.get(name, each.max_wait_s))
            for name, each in usual.classes.items()
        }
        return replace(usual, classes=own)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelsConfig:
    named: dict[str, ModelConfig] = field(default_factory=dict)
    """By public name."""
    ladders: dict[str, LadderConfig] = field(default_factory=dict)
    """Of models that have their own ladder, by public name."""

    def of(self, upstream: str) -> ModelConfig:
        return self.named.get(upstream, _UNBOUNDED)


_UNBOUNDED = ModelConfig()
