"""How many sequences one replica may run for us, found by its own latency.

    ratio = observed ÷ predicted no-load latency, the median over a window
    ratio ≤ grow_below and the limit was used:  L ← 1.5·L until the first shrink, then L + √L
    ratio > shrink_above:                       L ← L · clamp(shrink_above ÷ ratio, 0.5, 0.9)
    pushback or timeout:                        L ← 0.9·L, once a window

It starts at the engine's own number of sequences where that is known, else at ``initial``. Windows
last ``window_s`` and hold ``window_samples`` at least (failsafe-go adaptive limiter).
Why not Vegas or Gradient2 thresholds on raw latency: a healthy batch makes every step longer, so
they shrink it (at 200 sequences a 7 % rise is enough); and raw latency differs 100× with length.
Latencies under ``noise_floor_s`` are never a sign of overload. While nothing is predicted yet a
ratio of 1 is assumed, and the limit grows back to where it started but not beyond: pushbacks before
the first quiet moment must not keep it low for as long as the load lasts.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

from tidegate.policy.outcomes import LimitSignal


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitConfig:
    enabled: bool = True
    initial: int = 32
    minimum: int = 4
    maximum: int = 2048
    grow_below: float = 1.5
    shrink_above: float = 2.5
    window_s: float = 1.0
    window_samples: int = 10
    noise_floor_s: float = 0.1

    def __post_init__(self) -> None:
        if not 1 <= self.minimum <= self.initial <= self.maximum:
            raise ValueError(f"limits need 1 <= minimum <= initial <= maximum: {self}")
        if not 1 < self.grow_below < self.shrink_above or self.window_s <= 0 or self.window_samples < 1:
            raise ValueError(f"limits need 1 < grow_below < shrink_above and a positive window: {self}")


class AdaptiveLimit:
    __slots__ = ("_dropped", "_is_blind", "_ratios", "_slow_start", "_start", "_used", "_window_end", "config", "value")

    def __init__(self, config: LimitConfig, sequences: int | None = None) -> None:
        """``sequences``: what the engine says it can run; an engine that says nothing starts small."""
        self.config = config
        start = config.initial if sequences is None else sequences
        self._start = self.value = float(min(config.maximum, max(config.minimum, start)))
        self._slow_start = True
        self._ratios: list[float] = []
        self._dropped = False
        self._used = False
        self._is_blind = True
        self._window_end = 0.0

    def allows(self, in_flight: int, sequences: int) -> bool:
        """A request wider than the whole limit goes alone, so that it goes at all."""
        if in_flight + sequences <= self.value or in_flight == 0 or not self.config.enabled:
            return True
        self._used = True
        return False

    def record(self, signal: LimitSignal, observed_s: float, predicted_s: float, now: float) -> None:
        """One finished phase; ``predicted_s`` ≤ 0 means that nothing is known yet."""
        if signal is LimitSignal.DROP:
            self._dropped = True
        elif signal is LimitSignal.SAMPLE:
            self._is_blind = predicted_s <= 0
            self._ratios.append(1.0 if self._is_blind else observed_s / max(predicted_s, self.config.noise_floor_s))
        if now >= self._window_end and (self._dropped or len(self._ratios) >= self.config.window_samples):
            self._close_window(now)

    def _close_window(self, now: float) -> None:
        ratio = sorted(self._ratios)[len(self._ratios) // 2] if self._ratios else 1.0
        if ratio > self.config.shrink_above:
            self._shrink(max(0.5, min(0.9, self.config.shrink_above / ratio)))
        elif self._dropped:
            self._shrink(0.9)
        elif self._used and ratio <= self.config.grow_below:
            self._grow()
        self._ratios.clear()
        self._dropped = self._used = False
        self._window_end = now + self.config.window_s

    def _grow(self) -> None:
        grown = self.value * 1.5 if self._slow_start else self.value + sqrt(self.value)
        most = float(self.config.maximum)
        if self._is_blind:
            most = min(most, self._start)
        self.value = max(self.value, min(most, grown))

    def _shrink(self, factor: float) -> None:
        self._slow_start = False
        self.value = max(float(self.config.minimum), self.value * factor)

    def reconfigure(self, config: LimitConfig) -> None:
        self.config = config
        self.value = min(float(config.maximum), max(float(config.minimum), self.value))
