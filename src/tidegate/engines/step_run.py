"""A run of engine steps whose durations form an arithmetic series, on the clock."""

from __future__ import annotations

from math import isqrt

SECONDS_PER_PS = 1e-12


class StepRun:
    """Where a busy engine stands in time.

    Boundaries are ``started_at`` plus a whole number of picoseconds, so passing many steps at once
    lands on the same floating-point times as passing them one by one.
    """

    def __init__(self) -> None:
        self.steps = 0
        """Steps still to run as planned; 0 when the engine is idle."""
        self.step_ps = 0
        """Duration of the next one."""
        self.growth_ps = 0
        """How much longer each step of the run is than the one before."""
        self.ends_at = 0.0
        """When the last of the planned steps ends."""
        self._started_at = 0.0
        self._elapsed_ps = 0

    def start(self, now: float) -> None:
        """A busy period begins."""
        self._started_at = now
        self._elapsed_ps = 0

    def plan(self, steps: int, step_ps: int, growth_ps: int) -> None:
        """The next ``steps`` steps; each lasts ``growth_ps`` longer than the one before."""
        self.steps, self.step_ps, self.growth_ps = steps, step_ps, growth_ps
        self.ends_at = self._time_after(steps)

    @property
    def boundary_at(self) -> float:
        """When the last finished step ended."""
        return self._started_at + self._elapsed_ps * SECONDS_PER_PS

    def finished_steps(self, now: float) -> int:
        """How many of the planned steps have ended at ``now``."""
        steps = self.steps
        if steps == 0 or self.ends_at <= now:
            return steps
        if steps == 1 or self._time_after(1) > now:
            return 0
        return self._search(now)

    def advance(self, steps: int) -> None:
        self._elapsed_ps += self._duration_ps(steps)
        self.step_ps += steps * self.growth_ps
        self.steps -= steps

    def cut(self) -> None:
        """End the run with the step that is running: something changed."""
        if self.steps > 1:
            self.steps = 1
            self.ends_at = self._time_after(1)

    def delay(self, seconds: float) -> None:
        """The engine stood still for a while."""
        self._started_at += seconds
        self.ends_at = self._time_after(self.steps)

    def _duration_ps(self, steps: int) -> int:
        return steps * self.step_ps + self.growth_ps * (steps * (steps - 1) // 2)

    def _time_after(self, steps: int) -> float:
        return self._started_at + (self._elapsed_ps + self._duration_ps(steps)) * SECONDS_PER_PS

    def _search(self, now: float) -> int:
        """Solve ``growth/2·k² + (step - growth/2)·k <= time`` and mend the rounding of the clock."""
        time_ps = round((now - self._started_at) / SECONDS_PER_PS) - self._elapsed_ps
        slope = 2 * self.step_ps - self.growth_ps
        if self.growth_ps:
            guess = (isqrt(slope * slope + 8 * self.growth_ps * time_ps) - slope) // (2 * self.growth_ps)
        else:
            guess = time_ps // self.step_ps
        guess = max(0, min(guess, self.steps - 1))
        while guess > 0 and self._time_after(guess) > now:
            guess -= 1
        while guess + 1 < self.steps and self._time_after(guess + 1) <= now:
            guess += 1
        return guess
