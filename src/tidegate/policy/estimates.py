"""What the policies learn from what has happened: rates, line fits, means. All decay, none reads a clock."""

from __future__ import annotations

from math import exp


class DrainMeter:
    """Tokens a second that leave a line while somebody stands in it.

    Both the tokens served and the time spent backlogged decay with the same constant, so the
    ratio is a rate over the last backlogged ``decay_s`` seconds, whatever bound it: prefill,
    places or memory. Idle time counts for nothing.
    """

    __slots__ = ("_at", "_backlogged", "_busy_s", "_tokens", "samples")

    decay_s = 5.0
    least_busy_s = 0.5

    def __init__(self) -> None:
        self._at = 0.0
        self._backlogged = False
        self._busy_s = 0.0
        self._tokens = 0.0
        self.samples = 0

    def begin(self, now: float) -> None:
        self._pass_to(now)
        self._backlogged = True

    def end(self, now: float) -> None:
        self._pass_to(now)
        self._backlogged = False

    def served(self, tokens: int, now: float) -> None:
        self._pass_to(now)
        self._tokens += tokens
        self.samples += 1

    def tokens_per_s(self, now: float) -> float | None:
        """None until there was enough standing backlog to measure."""
        self._pass_to(now)
        if self._busy_s < self.least_busy_s or self._tokens <= 0:
            return None
        return self._tokens / self._busy_s

    def _pass_to(self, now: float) -> None:
        elapsed_s = now - self._at
        if elapsed_s <= 0:
            return
        keep = exp(-elapsed_s / self.decay_s)
        self._tokens *= keep
        self._busy_s *= keep
        if self._backlogged:
            # ∫ of the decay over the elapsed time: exact however the calls split it.
            self._busy_s += self.decay_s * (1.0 - keep)
        self._at = now


class LatencyFit:
    """seconds ≈ base_s + per_unit_s × units, by least squares with forgetting.

    Fed only with attempts that met little competition, it says what an attempt would take on a
    replica that is not overloaded; observed ÷ predicted is the load signal, comparable over prompts
    of any length (raw latency is not: LLM service times differ by 100× with the tokens).
    """

    __slots__ = ("_n", "_x", "_xx", "_xy", "_y", "base_s", "knows_slope", "per_unit_s", "samples")

    forget = 0.99
    """Weight of the past at each sample: a memory of about 100 samples."""

    def __init__(self) -> None:
        self._n = self._x = self._y = self._xx = self._xy = 0.0
        self.samples = 0
        self.base_s = 0.0
        self.per_unit_s = 0.0
        """0.0 while the units seen are too alike to tell a slope."""
        self.knows_slope = False

    def learn(self, units: float, seconds: float) -> None:
        keep = self.forget
        self._n = self._n * keep + 1.0
        self._x = self._x * keep + units
        self._y = self._y * keep + seconds
        self._xx = self._xx * keep + units * units
        self._xy = self._xy * keep + units * seconds
        self.samples += 1
        self._solve()

    def predict_s(self, units: float) -> float:
        """0.0 before any sample."""
        return self.base_s + self.per_unit_s * units

    def dump(self) -> list[float]:
        return [self._n, self._x, self._y, self._xx, self._xy, float(self.samples)]

    def restore(self, state: list[float]) -> None:
        self._n, self._x, self._y, self._xx, self._xy, samples = map(float, state)
        self.samples = int(samples)
        self._solve()

    def _solve(self) -> None:
        """The line goes through the mean of what was seen, so that it is right on average."""
        weighted = self._xx * self._n
        spread = weighted - self._x * self._x
        self.knows_slope = spread > 0.01 * weighted
        slope = (self._xy * self._n - self._x * self._y) / spread if self.knows_slope else 0.0
        self.per_unit_s = slope = max(0.0, slope)
        self.base_s = max(0.0, (self._y - slope * self._x) / self._n) if self._n else 0.0


class Mean:
    """Exponentially weighted mean that starts as a plain mean."""

    __slots__ = ("samples", "value")

    weight = 0.02

    def __init__(self) -> None:
        self.value = 0.0
        self.samples = 0

    def add(self, value: float) -> None:
        self.samples += 1
        self.value += (value - self.value) * max(self.weight, 1.0 / self.samples)
