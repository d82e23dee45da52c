"""How far ahead an engine is given prompts to read, where answers have an objective for their pace.

Prompts that are read slow down every answer that is being written, and an engine that runs out of prompts between two
steps wastes a part of a step. Which of the two costs more depends on the engine's chunk, which it does not tell: in
simulation, a horizon of 0.3 s instead of 0.15 serves 1.3 % more of a trace in its SLO with chunks of 512 tokens, and
makes one in ten answers too slow with chunks of 2048. So the answers themselves decide, a window at a time:

    too slow > late_share                         horizon ← horizon_s
    too slow ≤ late_share ÷ 4 and it was reached  horizon ← min(most_horizon_s, horizon + 0.01 s)

*Too slow*: mean time per output token above three quarters of the class's ``tpot_slo_s``. Without such an objective
nothing is judged.
"""

from __future__ import annotations

from tidegate.policy.limits.prefill import PrefillConfig

WINDOW_S = 1.0
WINDOW_ANSWERS = 20
STEP_S = 0.01


class Horizon:
    """One replica's."""

    __slots__ = ("_judged", "_late", "_window_end", "config", "is_reached", "value_s")

    def __init__(self, config: PrefillConfig) -> None:
        self.config = config
        self.value_s = config.horizon_s
        self.is_reached = False
        """Somebody has waited for the engine to read on since the last window."""
        self._judged = 0
        self._late = 0
        self._window_end = 0.0

    def judge(self, *, late: bool, now: float) -> bool:
        """One answer kept its pace, or not. True: the horizon moved."""
        self._judged += 1
        self._late += late
        if self._judged < WINDOW_ANSWERS or now < self._window_end:
            return False
        share, before = self._late / self._judged, self.value_s
        if share > self.config.late_share:
            self.value_s = self.config.horizon_s
        elif share <= self.config.late_share / 4 and self.is_reached:
            self.value_s = min(self.config.most_horizon_s, before + STEP_S)
        self._judged = self._late = 0
        self.is_reached = False
        self._window_end = now + WINDOW_S
        return self.value_s != before

    def reconfigure(self, config: PrefillConfig) -> None:
        self.config = config
        self.value_s = min(config.most_horizon_s, max(config.horizon_s, self.value_s))
