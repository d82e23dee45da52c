"""How long each phase of an attempt may last, learned from the phases that went well.

    timeout(phase) = clamp(multiplier × P90, floor, ceiling)          (SPEC S0-40, C8)

per upstream × class × length bucket, backing off to upstream × class, then upstream, then the
default while fewer than ``min_samples`` are held. Phases: first byte (from admission), the longest
gap inside one answer, total. An attempt that was cut short is censored: it lasted at least that
long. It counts only where that could not shorten the timeout, or clients who leave early would pull
it down until it cut those who stay. While the share of timed-out samples is above ``freeze_share``
learning is frozen: an overloaded engine must not teach us longer timeouts.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from enum import StrEnum

from tidegate.policy.request import NEVER
from tidegate.policy.sketch import Sketch, quantile


class Phase(StrEnum):
    FIRST_BYTE = "first_byte"
    GAP = "gap"
    TOTAL = "total"


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseConfig:
    """Bounds of one phase, in seconds. ``default_s`` holds until enough is known."""

    floor_s: float
    ceiling_s: float
    default_s: float

    def __post_init__(self) -> None:
        if not 0 < self.floor_s <= self.default_s <= self.ceiling_s:
            raise ValueError(f"a timeout needs 0 < floor_s <= default_s <= ceiling_s: {self}")


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeoutsConfig:
    enabled: bool = True
    """False: the defaults hold for ever."""
    multiplier: float = 3.0
    min_samples: int = 30
    freeze_share: float = 0.2
    # The total's floor is high on purpose: an answer that keeps coming is slow because the replica is
    # full, and cutting it throws its work away (in simulation a floor of 30 s cut 2 % of the answers
    # of a burst, all of them on their way). A stuck one is caught by its gap, whose floor stands above
    # the stalls that an engine's preemption causes (7–15 s without reservation, 0.5 s with; vLLM, CPU).
    first_byte: PhaseConfig = field(default=PhaseConfig(floor_s=5.0, ceiling_s=300.0, default_s=120.0))
    gap: PhaseConfig = field(default=PhaseConfig(floor_s=10.0, ceiling_s=120.0, default_s=60.0))
    total: PhaseConfig = field(default=PhaseConfig(floor_s=300.0, ceiling_s=3600.0, default_s=900.0))

    def __post_init__(self) -> None:
        if self.multiplier <= 1 or self.min_samples < 1 or not 0 < self.freeze_share <= 1:
            raise ValueError(f"timeouts need multiplier > 1, min_samples >= 1, 0 < freeze_share <= 1: {self}")


@dataclass(frozen=True, slots=True)
class Allowed:
    """Seconds each phase may last."""

    first_byte_s: float
    gap_s: float
    total_s: float
    late_s: float = NEVER
    """A first byte that takes longer is among the latest of its kind. NEVER: nobody asks, or too little is known."""

    def of(self, phase: Phase) -> float:
        return {Phase.FIRST_BYTE: self.first_byte_s, Phase.GAP: self.gap_s, Phase.TOTAL: self.total_s}[phase]


Key = tuple[str, str, int]
MOST_KEYS = 1000
REFRESH_S = 1.0
MEMORY = 0.02
"""Weight of one sample in the share that timed out: the last fifty count."""


class _Learned:
    """What one key has seen of every phase."""

    __slots__ = ("sketches", "timed_out")

    def __init__(self) -> None:
        self.sketches = {phase: Sketch() for phase in Phase}
        self.timed_out = 0.0
        """Decaying share of samples that timed out."""


class Timeouts:
    """Holds at most ``MOST_KEYS`` keys; the one unused for longest goes first.

    A sample is written once, under its own key; what the wider keys know is the sum of the sketches
    below them, added up when a timeout is worked out, at most once a second and key.
    """

    __slots__ = ("_allowed", "_learned", "config", "late_quantile")

    def __init__(self, config: TimeoutsConfig) -> None:
        self.config = config
        self.late_quantile: float | None = None
        """Of first bytes, from which one is late; None: nobody asks."""
        self._learned: OrderedDict[Key, _Learned] = OrderedDict()
        self._allowed: dict[Key, tuple[float, Allowed]] = {}

    def allowed(self, key: Key, now: float) -> Allowed:
        known = self._allowed.get(key)
        if known is None or now >= known[0]:
            if len(self._allowed) >= MOST_KEYS:
                self._allowed.clear()
            known = self._allowed[key] = (now + REFRESH_S, self._work_out(key, now))
        return known[1]

    def learn(self, key: Key, phase: Phase, seconds: float, now: float) -> None:
        """A phase that went well."""
        learned = self._learned.get(key) or self._add(key)
        learned.timed_out -= MEMORY * learned.timed_out
        if learned.timed_out <= self.config.freeze_share:
            learned.sketches[phase].add(seconds, now)

    def learn_at_least(self, key: Key, phase: Phase, seconds: float, now: float, *, timed_out: bool) -> None:
        """A phase that was cut short after ``seconds``: by us (``timed_out``) or by its client, which is
        no sign of overload."""
        learned = self._learned.get(key) or self._add(key)
        if timed_out:
            learned.timed_out += MEMORY * (1.0 - learned.timed_out)
        shortens = self.config.multiplier * seconds < self.allowed(key, now).of(phase)
        if learned.timed_out <= self.config.freeze_share and not shortens:
            learned.sketches[phase].add(seconds, now)

    def reconfigure(self, config: TimeoutsConfig, late_quantile: float | None = None) -> None:
        self.config, self.late_quantile = config, late_quantile
        self._allowed.clear()

    def _add(self, key: Key) -> _Learned:
        if len(self._learned) >= MOST_KEYS:
            self._learned.popitem(last=False)
        learned = self._learned[key] = _Learned()
        return learned

    def _work_out(self, key: Key, now: float) -> Allowed:
        config = self.config
        if key in self._learned:
            self._learned.move_to_end(key)
        return Allowed(
            self._phase_s(key, Phase.FIRST_BYTE, config.first_byte, now),
            self._phase_s(key, Phase.GAP, config.gap, now),
            self._phase_s(key, Phase.TOTAL, config.total, now),
            NEVER if self.late_quantile is None else self._late_s(key, self.late_quantile, now),
        )

    def _late_s(self, key: Key, q: float, now: float) -> float:
        for width in range(len(key), 0, -1):
            late_s = self._quantile_s(key[:width], Phase.FIRST_BYTE, q, now)
            if late_s is not None:
                return late_s
        return NEVER

    def _phase_s(self, key: Key, phase: Phase, bounds: PhaseConfig, now: float) -> float:
        if not self.config.enabled:
            return bounds.default_s
        for width in range(len(key), 0, -1):
            p90_s = self._quantile_s(key[:width], phase, 0.9, now)
            if p90_s is not None:
                return min(bounds.ceiling_s, max(bounds.floor_s, self.config.multiplier * p90_s))
        return bounds.default_s

    def _quantile_s(self, prefix: tuple[str | int, ...], phase: Phase, q: float, now: float) -> float | None:
        """Over all keys that begin so; None while they hold fewer than ``min_samples``."""
        below = [learned.sketches[phase] for key, learned in self._learned.items() if key[: len(prefix)] == prefix]
        return quantile(below, q, now, self.config.min_samples)


def timing_key(upstream: str, service_class: str, prompt_tokens: int) -> Key:
    """Length buckets are powers of four: 0 up to 255 tokens, 1 up to 1023, 2 up to 4095, …"""
    bucket = (prompt_tokens.bit_length() - 7) // 2
    return upstream, service_class, bucket if bucket > 0 else 0
