"""Decides when one replica is left alone, and when it is tried again.

Opens when, in the last ``window_s``, at least ``min_calls`` ended and the share of bad ones reached
``failure_share``, or of slow ones ``slow_share``; or after ``consecutive_failures`` bad ones in a
row, so that a quiet service opens it too; or after ``connect_failures`` connections in a row that
nobody took, for such a replica is gone. Stays open for ``cooldown_s`` × 2ⁿ up to ``max_cooldown_s``,
or until its process is seen to have come back; then lets ``probes`` requests through, one until the
first has passed, short ones first. All must be good, and in time, to close it: a stream by its first
byte, any other by its end. What counts as bad is the outcome table; what counts as slow is for the
caller to say. n falls to 0 when it has stayed closed for ``window_s``.

The only half-open machine of the project. Every transition is a row of ``TRANSITIONS``; nothing
but ``_fire`` assigns the state. The last replica of an upstream is never opened: the caller passes
``may_open=False``. A good call never opens it, so only bad and slow ones are weighed. Requests that
are placed in spite of it (``Upstream.choose``, in a panic) count too: enough good ones close it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from tidegate.policy.outcomes import Verdict
from tidegate.policy.request import NEVER


class State(StrEnum):
    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


class Signal(StrEnum):
    TRIPPED = "tripped"
    COOLED = "cooled"
    PROBE_FAILED = "probe_failed"
    PROBES_PASSED = "probes_passed"
    SWITCHED_OFF = "switched_off"


TRANSITIONS = {
    (State.CLOSED, Signal.TRIPPED): State.OPEN,
    (State.OPEN, Signal.COOLED): State.HALF_OPEN,
    (State.HALF_OPEN, Signal.PROBE_FAILED): State.OPEN,
    (State.HALF_OPEN, Signal.PROBES_PASSED): State.CLOSED,
    (State.OPEN, Signal.PROBES_PASSED): State.CLOSED,
    (State.OPEN, Signal.SWITCHED_OFF): State.CLOSED,
    (State.HALF_OPEN, Signal.SWITCHED_OFF): State.CLOSED,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerConfig:
    """resilience4j's defaults (window 100 calls, open 60 s) keep a healthy engine away for a minute
    after one bad second; rivals were measured to lose 53 s so. These recover in seconds."""

    enabled: bool = True
    window_s: float = 10.0
    min_calls: int = 20
    failure_share: float = 0.5
    slow_share: float = 0.6
    consecutive_failures: int = 5
    connect_failures: int = 1
    cooldown_s: float = 1.0
    max_cooldown_s: float = 3.0
    probes: int = 3

    def __post_init__(self) -> None:
        if min(self.min_calls, self.consecutive_failures, self.connect_failures, self.probes) < 1:
            raise ValueError(f"every count of the breaker must be at least 1: {self}")
        if self.window_s <= 0 or not 0 < self.cooldown_s <= self.max_cooldown_s:
            raise ValueError(f"the breaker needs window_s > 0 and 0 < cooldown_s <= max_cooldown_s: {self}")
        if not (0 < self.failure_share <= 1 and 0 < self.slow_share <= 1):
            raise ValueError(f"the breaker's shares lie in (0, 1]: {self}")


_SLICES = 10
SHORT_TOKENS = 2048
"""Prompt and reserved output of a request that may be a probe at once."""
LONGER_AFTER_S = 1.0
"""When no short request has come for so long, any will do."""

# A look into an Enum class costs about a microsecond in Python 3.11, and these are needed for every request.
_CLOSED, _OPEN, _HALF_OPEN = State.CLOSED, State.OPEN, State.HALF_OPEN
_SILENT, _GOOD, _BAD = Verdict.SILENT, Verdict.GOOD, Verdict.BAD


class Breaker:
    __slots__ = (
        "_cooldowns",
        "_probes_out",
        "_probes_passed",
        "_run",
        "_slices",
        "any_from",
        "closed_at",
        "config",
        "generation",
        "open_until",
        "state",
    )

    def __init__(self, config: BreakerConfig) -> None:
        self.config = config
        self.state = State.CLOSED
        self.generation = 0
        """Grows with each transition; a result from before the last one is ignored."""
        self.open_until = 0.0
        self.any_from = 0.0
        """When a half-open one takes long requests too."""
        self.closed_at = 0.0
        """When it last closed."""
        self._cooldowns = 0
        self._run = 0
        self._probes_out = 0
        self._probes_passed = 0
        self._slices: list[list[int]] = []

    def allows(self, now: float, tokens: int = 0) -> bool:
        """Whether an attempt may be placed, of so many tokens in all; takes nothing yet."""
        if self.state is _CLOSED:
            return True
        if self.state is _OPEN:
            if now < self.open_until:
                return False
            self._fire(Signal.COOLED, now)
        return self._has_probe_place() and (tokens <= SHORT_TOKENS or now >= self.any_from)

    def _has_probe_place(self) -> bool:
        # Until one has passed it is most likely still broken: one request is enough to find out.
        places = self.config.probes - self._probes_passed if self._probes_passed else 1
        return self._probes_out < places

    def take(self) -> bool:
        """Count one attempt as placed. True: it is a probe. Call right after ``allows``."""
        if self.state is _HALF_OPEN and self._has_probe_place():
            self._probes_out += 1
            return True
        return False

    def answered(self, generation: int, now: float, *, slow: bool) -> None:
        """The first byte of a probe that streams has come: it is judged by that, and is no probe from here on."""
        if generation == self.generation and self.state is _HALF_OPEN:
            self._record_probe(_BAD if slow else _GOOD, now)

    def record(
        self,
        generation: int,
        verdict: Verdict,
        now: float,
        *,
        slow: bool,
        may_open: bool,
        probe: bool = True,
        unreachable: bool = False,
    ) -> None:
        """An attempt ended. ``probe``: it holds a probe's place (any other that ends in the half-open state can only
        fail it). ``unreachable``: no connection came about."""
        if generation != self.generation:
            return
        if self.state is not _CLOSED:
            self._record_trial(verdict, now, slow=slow, probe=probe)
        elif verdict is not _SILENT and self.config.enabled:
            bad = verdict is _BAD
            self._run = self._run + (self._run_weight() if unreachable else 1) if bad else 0
            self._count(bad, slow, now)
            if (bad or slow) and may_open:
                self._weigh(now)

    def look_again(self, now: float) -> None:
        """Its process has come back: try it at once, and as patiently as if it had never failed."""
        if self.state is _OPEN:
            self._cooldowns = 0
            self._fire(Signal.COOLED, now)

    def opens_at(self, after: float) -> float:
        """The next moment later than ``after`` at which time alone lets more through; infinite if there is none."""
        at = self.open_until if self.state is _OPEN else self.any_from if self.state is _HALF_OPEN else NEVER
        return at if at > after else NEVER

    def tallies(self, now: float) -> tuple[int, int]:
        """Of the window: calls that ended with a verdict, and bad ones among them."""
        oldest = int(now * _SLICES / self.config.window_s) - _SLICES
        kept = [each for each in self._slices if each[0] > oldest]
        return sum(each[1] for each in kept), sum(each[2] for each in kept)

    def reconfigure(self, config: BreakerConfig, now: float) -> None:
        if config.window_s != self.config.window_s:
            self._slices.clear()
        self.config = config
        if self.state is not _CLOSED and not config.enabled:
            self._fire(Signal.SWITCHED_OFF, now)
        elif self.state is _OPEN:
            self.open_until = min(self.open_until, now + config.max_cooldown_s)
        elif self.state is _HALF_OPEN and self._probes_passed >= config.probes:
            self._fire(Signal.PROBES_PASSED, now)

    def _record_trial(self, verdict: Verdict, now: float, *, slow: bool, probe: bool) -> None:
        """An attempt ended that was placed while it was not closed."""
        if slow and verdict is _GOOD:
            verdict = _BAD
        if self.state is _OPEN:
            # Placed in a panic. It stays open however many fail, and closes by as many as probes would have to pass.
            if verdict is not _SILENT:
                self._probes_passed = self._probes_passed + 1 if verdict is _GOOD else 0
                self._close_if_passed(now)
        elif probe:
            self._record_probe(verdict, now)
        elif verdict is _BAD:
            self._fire(Signal.PROBE_FAILED, now)

    def _record_probe(self, verdict: Verdict, now: float) -> None:
        self._probes_out -= 1
        if verdict is _BAD:
            self._fire(Signal.PROBE_FAILED, now)
        elif verdict is _GOOD:
            self._probes_passed += 1
            self._close_if_passed(now)

    def _close_if_passed(self, now: float) -> None:
        if self._probes_passed >= self.config.probes:
            self._fire(Signal.PROBES_PASSED, now)

    def _run_weight(self) -> int:
        """Failures that one connection which nobody took stands for."""
        return -(-self.config.consecutive_failures // self.config.connect_failures)

    def _weigh(self, now: float) -> None:
        if self._run >= self.config.consecutive_failures or self._window_is_bad():
            self._fire(Signal.TRIPPED, now)

    def _count(self, bad: bool, slow: bool, now: float) -> None:
        current = int(now * _SLICES / self.config.window_s)
        slices = self._slices
        if not slices or slices[-1][0] != current:
            slices.append([current, 0, 0, 0])
            while slices[0][0] <= current - _SLICES:
                del slices[0]
        last = slices[-1]
        last[1] += 1
        last[2] += bad
        last[3] += slow

    def _window_is_bad(self) -> bool:
        calls = sum(each[1] for each in self._slices)
        if calls < self.config.min_calls:
            return False
        bad, slow = sum(each[2] for each in self._slices), sum(each[3] for each in self._slices)
        return bad >= self.config.failure_share * calls or slow >= self.config.slow_share * calls

    def _fire(self, signal: Signal, now: float) -> None:
        self.state = TRANSITIONS[self.state, signal]
        self.generation += 1
        self._run = self._probes_out = self._probes_passed = 0
        self._slices.clear()
        if self.state is _HALF_OPEN:
            self.any_from = now + LONGER_AFTER_S
        elif self.state is _OPEN:
            if signal is Signal.TRIPPED and now - self.closed_at > self.config.window_s:
                self._cooldowns = 0
            self.open_until = now + min(self.config.max_cooldown_s, self.config.cooldown_s * 2.0**self._cooldowns)
            self._cooldowns = min(self._cooldowns + 1, 16)
        else:
            self.closed_at = now
