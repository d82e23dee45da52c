"""How many replicas may be set aside, and for how long: the bounds of every automatic mark on a replica.

    time aside = base_s × n, at most max_s;  n grows by one each time, and begins anew after max_s without a mark
    at most max_ejected_share of those that are up, rounded down, though one may always go where two are up

Envoy's outlier detection has the same bounds. Those that a breaker keeps away count too, and the last usable replica
is never set aside: a slow one serves, and nobody does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tidegate.policy.marks import Mark, MarkKind, Marks
from tidegate.policy.replica import Replica


@dataclass(frozen=True, slots=True, kw_only=True)
class EjectionsConfig:
    base_s: float = 5.0
    """How long a replica is set aside the first time; n times as long the n-th."""
    max_s: float = 60.0
    """Never longer."""
    max_ejected_share: float = 0.3
    """Of the replicas that are up, the part that may be away at once, those with an open breaker included."""

    def __post_init__(self) -> None:
        if not 0 < self.base_s <= self.max_s or not 0 <= self.max_ejected_share <= 1:
            raise ValueError(f"ejections need 0 < base_s <= max_s and a share in [0, 1]: {self}")


class Ejections:
    __slots__ = ("_marks", "_times", "config")

    def __init__(self, marks: Marks, config: EjectionsConfig) -> None:
        self._marks = marks
        self.config = config
        self._times: dict[str, tuple[int, float, float]] = {}
        """By replica: how often, when last, and until when."""

    def may_eject(self, replicas: Sequence[Replica], replica: Replica, now: float) -> bool:
        """Enough others remain."""
        up = [each for each in replicas if each.serves]
        away = sum(not each.is_usable(now) for each in up)
        most = max(1, int(self.config.max_ejected_share * len(up)))
        return replica.is_usable(now) and away < most and away + 1 < len(up)

    def eject(self, replicas: Sequence[Replica], replica: Replica, reason: str, evidence: str, now: float) -> bool:
        """Set ``replica`` aside for a while, if enough others remain."""
        if not self.may_eject(replicas, replica, now):
            return False
        times, _, until = self._times.get(replica.name, (0, 0.0, 0.0))
        times = 1 if now - until > self.config.max_s else times + 1
        until = now + min(self.config.max_s, self.config.base_s * times)
        self._times[replica.name] = (times, now, until)
        replica.set_aside(until, is_banned=False)
        self._marks.add(Mark(MarkKind.REPLICA, replica.name, reason, until, evidence), now)
        return True

    def since(self, replica: Replica) -> float:
        """When it was last set aside."""
        return self._times.get(replica.name, (0, 0.0, 0.0))[1]

    def keep(self, names: set[str]) -> None:
        """Forget all others: they are gone."""
        self._times = {name: times for name, times in self._times.items() if name in names}
