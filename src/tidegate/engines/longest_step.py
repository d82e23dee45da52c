"""The longest step since a given one, for every sequence at once."""

from __future__ import annotations

from bisect import bisect_left


class LongestStep:
    """Keeps only steps that no later one exceeds, so durations fall and a look-up is a bisection.

    Every decoding sequence gets a token in each step: the longest step since it joined is the
    longest silence in its stream.
    """

    def __init__(self) -> None:
        self._steps: list[int] = []
        self._durations_ps: list[int] = []

    def add(self, step: int, duration_ps: int) -> None:
        durations = self._durations_ps
        while durations and durations[-1] <= duration_ps:
            durations.pop()
            self._steps.pop()
        self._steps.append(step)
        durations.append(duration_ps)

    def since(self, step: int) -> int:
        """Picoseconds; 0 when no step was added from ``step`` on."""
        index = bisect_left(self._steps, step)
        return self._durations_ps[index] if index < len(self._steps) else 0
