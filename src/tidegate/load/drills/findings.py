"""What one drill came to: what its clients saw, how long it took, and whether its bars were met."""

from __future__ import annotations

from dataclasses import dataclass, field

from tidegate.load.drills.restart_check import RestartCheck
from tidegate.load.verdict import Verdict


@dataclass(slots=True, kw_only=True)
class Findings:
    """Times are seconds since the drill's load began; ``definitions`` (docs/drills.md) says what each figure means.

    Requests are counted from the fault on, as their clients saw them. None: it was not seen, or did not come to pass.
    """

    drill: str
    question: str
    rows: tuple[str, ...]
    fault: str
    deployment: str
    is_own: bool = True
    """The deployment was started for it, and shows what happens behind the gateway."""
    began: str = ""
    """ISO 8601, with the time zone."""
    rate_per_s: float = 0.0
    baseline_requests: int = 0
    baseline_p95_s: float | None = None
    """Of E2E, from when requests were due."""
    baseline_error_share: float | None = None
    broken_at: float | None = None
    healed_at: float | None = None
    ended_at: float | None = None
    detected_s: float | None = None
    """From the fault until the last request that failed during it was due: afterwards clients notice nothing. 0: none
    failed. None: they failed until it was healed."""
    recovered_s: float | None = None
    """From the healing until P95 and errors were back at the baseline for good."""
    due: int = 0
    outcomes: dict[str, int] = field(default_factory=dict)
    codes: dict[str, int] = field(default_factory=dict)
    """Of refusals and errors."""
    lost: int = 0
    """No answer, or one that was cut: broken, timed out, refused connections."""
    late: int = 0
    """Answered, and more than three times as slow as the P95 of the baseline."""
    duplicated: int | None = None
    """Request ids for which more than one whole answer was computed, or charged. None: nobody could tell."""
    longest_s: float = 0.0
    """The longest that any client waited for its end."""
    by_replica: dict[str, int] = field(default_factory=dict)
    """Answers to requests that were due during the fault."""
    restarts: list[RestartCheck] = field(default_factory=list)
    figures: dict[str, float | None] = field(default_factory=dict)
    """The drill's own."""
    notes: list[str] = field(default_factory=list)
    verdicts: list[Verdict] = field(default_factory=list)
    skipped: str = ""
    """Why it could not run here; that is no pass."""
    aborted: str = ""
    """Why it was ended early."""
    left_broken: list[str] = field(default_factory=list)
    """What could not be put back: somebody has to."""
    moments: list[tuple[float, int, int, float | None]] = field(default_factory=list)
    """By second of the drill: when it began, answers, errors, P95 of E2E of what was due in it."""

    @property
    def errors(self) -> int:
        from_errors = ("unexpected", "client_fault", "error", "abnormal", "broken", "timeout", "refused")
        return sum(self.outcomes.get(each, 0) for each in from_errors)

    @property
    def passed(self) -> bool | None:
        """None: it was skipped."""
        if self.skipped:
            return None
        is_met = all(
            verdict.passed or (verdict.passed is None and not verdict.is_required) for verdict in self.verdicts
        )
        return is_met and not (self.aborted or self.left_broken)
