"""Holds requests for a moment, so that several go to the engines together.

The window in which they gather is ``idle_window_s`` long below ``low_load``, ``busy_window_s`` above
``high_load``, and between the two on a straight line (SPEC S0-27, which leaves that part open). The load follows
in steps of ``hysteresis``, so that a load on a border does not make the window jump. It opens with the first
request that waits; whatever has come by its end is looked at in the queue's own order.

Off by default: engines that batch continuously gather by themselves, and waiting in front of them is
lost time (measured: docs/policies/pacing.md).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PacingConfig:
    enabled: bool = False
    idle_window_s: float = 0.015
    """Time to gather while load is low (S0-27); 0: none."""
    busy_window_s: float = 0.003
    """Time to gather while load is high (S0-27); 0: none."""
    low_load: float = 0.60
    """Load that counts as low: the fuller of sequences and KV slots, over all replicas."""
    high_load: float = 0.85
    """Load that counts as high."""
    hysteresis: float = 0.05
    """Change of load that the window does not follow."""

    def __post_init__(self) -> None:
        if min(self.idle_window_s, self.busy_window_s, self.hysteresis) < 0 or not 0 <= self.low_load < self.high_load:
            raise ValueError(f"pacing needs windows and hysteresis of at least 0 and 0 <= low_load < high_load: {self}")


class Pacing:
    """The window of one model."""

    __slots__ = ("_load", "config", "opens_at")

    def __init__(self, config: PacingConfig) -> None:
        self.config = config
        self.opens_at = 0.0
        """When those that gather may go; 0.0: nobody gathers."""
        self._load = 0.0

    def window_s(self, load: float) -> float:
        """How long the next window lasts at this load, from 0 to 1."""
        config = self.config
        if abs(load - self._load) > config.hysteresis:
            self._load = load
        part = (self._load - config.low_load) / (config.high_load - config.low_load)
        part = min(1.0, max(0.0, part))
        return config.idle_window_s + part * (config.busy_window_s - config.idle_window_s)

    def gather(self, load: float, now: float) -> None:
        """A request came to wait; the first one opens the window."""
        if self.opens_at == 0.0:
            window_s = self.window_s(load)
            if window_s > 0.0:
                self.opens_at = now + window_s

    def is_gathering(self, now: float) -> bool:
        """Nobody may go yet. The window closes by itself with the first look after its end."""
        if self.opens_at == 0.0:
            return False
        if now < self.opens_at:
            return True
        self.opens_at = 0.0
        return False

    def view(self) -> dict[str, object]:
        return {"load": self._load, "window_s": self.window_s(self._load)}
