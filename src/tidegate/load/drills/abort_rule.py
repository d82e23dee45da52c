"""When a drill hurts more than it may, and is ended (SPEC S1-72)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tidegate.load.drills.recovery import error_share
from tidegate.load.sample import Sample


@dataclass(frozen=True, slots=True, kw_only=True)
class AbortRule:
    error_share: float
    """Of the requests that ended within the last ``within_s``."""
    within_s: float = 6.0
    least: int = 6
    """Fewer ends say nothing."""

    def why(self, samples: Sequence[Sample], now: float) -> str:
        """Why the drill must be ended; "": it need not."""
        recent = [each for each in samples if each.ended_at > now - self.within_s]
        share = error_share(recent) if len(recent) >= self.least else None
        if share is None or share <= self.error_share:
            return ""
        return (
            f"{share:.0%} of the {len(recent)} requests that ended within {self.within_s:g} s failed, "
            f"more than the {self.error_share:.0%} that this drill may cost"
        )
