"""How much of a client's patience may be spent waiting: a margin that tunes itself.

A ticket that would be answered exactly at its deadline is usually late: in simulation, refusing at
1.0 × the deadline gave 64 % goodput at 2 × load and 82 % at 0.85 (project research, §0). So the
margin starts at ``most``; while more than ``late_share`` of the requests that waited come too
late it falls, below ``early_share`` it rises again.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class MarginConfig:
    least: float = 0.7
    most: float = 0.85
    late_share: float = 0.02
    early_share: float = 0.005
    window: int = 50
    """Answers judged at a time."""
    class_share: float = 0.6
    """Of a class's own wait (``max_wait_s``), where neither an objective nor its client binds: whoever would probably
    wait longer is refused at arrival, not at the end of that time."""
    length_power: float = 2.0
    """Under an objective, a prompt k times the usual length may spend 1/k to this power of its time waiting. 0: all
    are alike."""

    def __post_init__(self) -> None:
        if not 0 < self.least <= self.most <= 1 or not 0 <= self.early_share <= self.late_share or self.window < 1:
            raise ValueError(f"margin needs 0 < least <= most <= 1, early_share <= late_share, window >= 1: {self}")
        if self.length_power < 0 or not 0 < self.class_share <= 1:
            raise ValueError(f"margin needs length_power >= 0 and 0 < class_share <= 1: {self}")


class Margin:
    __slots__ = ("_late", "_seen", "config", "value")

    def __init__(self, config: MarginConfig) -> None:
        self.config = config
        self.value = config.most
        self._seen = 0
        self._late = 0

    def record(self, *, late: bool) -> None:
        """One request that had waited in the queue came to its first byte, or to its limit."""
        self._seen += 1
        self._late += late
        if self._seen < self.config.window:
            return
        share = self._late / self._seen
        step = -0.03 if share > self.config.late_share else 0.01 if share < self.config.early_share else 0.0
        self.value = min(self.config.most, max(self.config.least, self.value + step))
        self._seen = self._late = 0

    def reconfigure(self, config: MarginConfig) -> None:
        self.config = config
        self.value = min(config.most, max(config.least, self.value))
