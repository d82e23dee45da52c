"""How long a drill takes and how much load it runs under."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """Seconds of each part of a drill."""

    baseline_s: float = 20.0
    fault_s: float = 25.0
    after_s: float = 25.0
    rate_per_s: float = 2.0
    """Of the steady load."""
    peak_per_s: float | None = None
    """What the service can do; spikes are multiples of it. None: not known, and no drill sends any."""
    patience_s: float = 40.0
    """A client that has no end by then leaves."""
    tokens: int = 6
    """Of each answer."""


SHORT = Pace(baseline_s=3.0, fault_s=8.0, after_s=6.0, patience_s=20.0)
"""For CI: what a fault does at first, not what it does for long."""
