"""The retry allowance: retries are a share of the requests, never a multiple of the failures.

A token bucket (Finagle's RetryBudget): every admitted request adds ``ratio``, time adds
``floor_per_s``, a retry takes 1. With everything failing, load grows by ``ratio`` at most, where
three blind retries would quadruple it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tidegate.policy.hedging import HedgeConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class RetriesConfig:
    enabled: bool = True
    ratio: float = 0.1
    floor_per_s: float = 1.0
    most: float = 100.0
    most_continuations: int = 2
    """How often one stream may be continued on another replica; each costs a retry."""
    hedge: HedgeConfig = field(default=HedgeConfig())

    def __post_init__(self) -> None:
        if not 0 <= self.ratio <= 1 or self.floor_per_s < 0 or self.most < 1 or self.most_continuations < 0:
            raise ValueError(
                f"retries need 0 <= ratio <= 1, floor_per_s >= 0, most >= 1 and most_continuations >= 0: {self}"
            )


class RetryAllowance:
    __slots__ = ("_at", "config", "left")

    def __init__(self, config: RetriesConfig, now: float) -> None:
        self.config = config
        self.left = min(10.0, config.most)
        self._at = now

    def admitted(self) -> None:
        left, most = self.left + self.config.ratio, self.config.most
        self.left = most if left > most else left

    def spend(self, now: float) -> bool:
        """Take one retry, if there is one."""
        self.left = min(self.config.most, self.left + max(0.0, now - self._at) * self.config.floor_per_s)
        self._at = now
        if not self.config.enabled or self.left < 1.0:
            return False
        self.left -= 1.0
        return True
