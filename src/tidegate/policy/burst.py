"""Whether more requests arrive than usual, by far.

A burst begins with the request that makes the running second hold more than ``ratio`` × the usual rate, and
at least ``least_per_s``; it ends when ``calm_s`` have passed in which no second held more than half of that.
The usual rate is an exponential mean of the seconds' counts over ``usual_s``, of which the first few weigh
alike, so that a start is no burst for a minute. It goes on learning while a burst lasts: what stays is usual.

The source (SPEC S0-28) speaks both of "+300 %", which is 4 ×, and of "more than 3 × the mean" (S0-36); 3 × the
mean is what is meant here.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp

from tidegate.policy.request import NEVER


@dataclass(frozen=True, slots=True, kw_only=True)
class BurstConfig:
    ratio: float = 3.0
    """Arrivals of one window ÷ usual arrivals from which a burst is seen (S0-28, S0-36)."""
    window_s: float = 1.0
    """What arrivals are counted in (S0-28)."""
    least_per_s: float = 10.0
    """Fewer arrivals a second are never a burst: three requests after a quiet night are none."""
    usual_s: float = 60.0
    """Over what time the usual rate is taken."""
    calm_s: float = 5.0
    """Quiet that ends a burst."""

    def __post_init__(self) -> None:
        if self.ratio <= 1 or min(self.window_s, self.usual_s) <= 0 or min(self.least_per_s, self.calm_s) < 0:
            raise ValueError(f"burst needs ratio > 1, window_s and usual_s > 0, least_per_s and calm_s >= 0: {self}")


class Burst:
    """Of one model."""

    __slots__ = ("_calm_since", "_count", "_window_at", "_windows", "bursts", "config", "is_on", "usual_per_s")

    def __init__(self, config: BurstConfig) -> None:
        self.config = config
        self.is_on = False
        self.usual_per_s = 0.0
        self.bursts = 0
        """Seen so far."""
        self._count = 0
        self._windows = 0
        self._window_at = -NEVER
        self._calm_since = 0.0

    def note(self, now: float) -> bool:
        """A request arrived. Returns whether a burst is on."""
        config = self.config
        if now >= self._window_at + config.window_s:
            self.pass_to(now)
        self._count += 1
        if not self.is_on and self._count >= config.least_per_s * config.window_s:
            self.is_on = self._count > config.ratio * self.usual_per_s * config.window_s
            self.bursts += self.is_on
            self._calm_since = self._window_at + config.window_s
        return self.is_on

    def pass_to(self, now: float) -> None:
        """Close the windows that are over; call before ``is_on`` is read without a request."""
        config = self.config
        if self._windows == 0:
            self._window_at, self._windows = now, 1
            return
        over = int((now - self._window_at) / config.window_s)
        if over < 1:
            return
        self._close_window(over - 1)
        self._window_at += over * config.window_s
        self._count = 0
        if self.is_on and self._window_at - self._calm_since >= config.calm_s:
            self.is_on = False

    def _close_window(self, empty: int) -> None:
        """The window that ends held ``_count``, and ``empty`` ones followed it."""
        config = self.config
        per_s = self._count / config.window_s
        keep = exp(-config.window_s / config.usual_s)
        if per_s > 0.5 * config.ratio * self.usual_per_s and per_s >= 0.5 * config.least_per_s:
            self._calm_since = self._window_at + config.window_s
        self.usual_per_s += (per_s - self.usual_per_s) * max(1.0 - keep, 1.0 / self._windows)
        self._windows += 1 + empty
        self.usual_per_s *= keep**empty

    def view(self, now: float) -> dict[str, object]:
        self.pass_to(now)
        return {"is_on": self.is_on, "usual_per_s": self.usual_per_s, "bursts": self.bursts}
