"""When an engine that ended is started again, and when not at all."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartConfig:
    """Times in seconds."""

    first_s: float = 0.5
    """Pause before the first restart; each further one takes twice as long."""
    longest_s: float = 30.0
    """Ceiling of the pause."""
    healthy_s: float = 60.0
    """An engine that was ready this long has come up well: the next pause is the first one again."""
    tries: int = 3
    """Starts of an engine that was never ready before it is given up: its configuration is wrong."""

    def __post_init__(self) -> None:
        if not 0 < self.first_s <= self.longest_s or self.healthy_s <= 0 or self.tries < 1:
            raise ValueError(f"pauses and tries must be positive, the first pause no longer than the longest: {self}")


class Restarts:
    """Exponential back-off over the lives of one engine."""

    def __init__(self, config: RestartConfig) -> None:
        self._config = config
        self._failures = 0
        self._was_ever_ready = False

    def pause_s(self, ready_for_s: float | None) -> float | None:
        """Seconds to wait after a life that was ready for ``ready_for_s`` (None: never). None: give up."""
        if ready_for_s is not None:
            self._was_ever_ready = True
            if ready_for_s >= self._config.healthy_s:
                self._failures = 0
        self._failures += 1
        if not self._was_ever_ready and self._failures >= self._config.tries:
            return None
        return min(self._config.longest_s, self._config.first_s * 2.0 ** min(self._failures - 1, 60))
