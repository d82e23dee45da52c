"""A token bucket that holds one minute's worth and fills steadily.

Kept as what is missing from full, so that another rate can be set at any time, and an account that
nobody uses is the same as a new one.
"""

from __future__ import annotations

NEVER_S = float("inf")


class Bucket:
    """Amounts are requests or tokens; rates are per minute."""

    __slots__ = ("_at", "spent")

    def __init__(self) -> None:
        self.spent = 0.0
        """Missing from full at the latest look; more than a minute's worth is debt."""
        self._at = 0.0

    def settle_to(self, per_minute: int, now: float) -> float:
        """What is missing from full at ``now``."""
        elapsed_s = now - self._at
        if elapsed_s > 0:
            self.spent = max(0.0, self.spent - elapsed_s * per_minute / 60.0)
            self._at = now
        return self.spent

    def wait_s(self, amount: int, per_minute: int, now: float) -> float:
        """Until it holds ``amount``: 0.0 when it does already, infinite for more than it ever holds."""
        if amount > per_minute:
            return NEVER_S
        beyond = self.settle_to(per_minute, now) + amount - per_minute
        return max(0.0, beyond * 60.0 / per_minute)

    def take(self, amount: int, per_minute: int, now: float) -> None:
        """When ``wait_s`` gave 0.0 for it."""
        self.spent = self.settle_to(per_minute, now) + amount

    def give_back(self, amount: int, per_minute: int, now: float) -> None:
        """What was taken and not used; below zero: what was used beyond, which becomes debt."""
        self.spent = max(0.0, self.settle_to(per_minute, now) - amount)
