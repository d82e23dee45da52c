"""How a phase stands while it is played."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Counts since the phase began; rates and times of the last seconds. None: nothing to tell yet."""

    phase: str
    target: str
    elapsed_s: float
    duration_s: float
    due: int = 0
    sent: int = 0
    in_flight: int = 0
    outcomes: dict[str, int] = field(default_factory=dict)
    """By ``ClientOutcome``, of those that have ended."""
    due_rate_per_s: float | None = None
    sent_rate_per_s: float | None = None
    ttft_p50_s: float | None = None
    ttft_p99_s: float | None = None
    e2e_p50_s: float | None = None
    e2e_p99_s: float | None = None
    lag_p99_s: float | None = None
    """How late asks were sent."""
