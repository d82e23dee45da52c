"""Which replica behaves unlike its peers: much slower, or failing much more often.

    slow:     its median (``Pace``) > slow_factor × the median of its peers' medians, in ``windows`` windows in a row
    failing:  failure_share or more of its calls, and more than failure_factor × its peers' share, as often in a row

A breaker knows only its own replica: it sees neither one that is slow but well inside every timeout, nor one that
fails a fifth of its calls. What all replicas do alike is load, or the requests, and marks nobody. Only figures of the
last seconds are compared; a window needs samples enough for its median to stand still.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tidegate.policy.ejections import Ejections
from tidegate.policy.marks import OUTLIER
from tidegate.policy.replica import Replica

LEAST_PEERS_SHARE = 0.01
MOST_CLOSED = 16
"""Windows closed in one look: all of a large fleet's at once would hold the loop for milliseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutliersConfig:
    enabled: bool = True
    window_s: float = 0.5
    """Least time between two looks; a window with too few samples goes on."""
    min_samples: int = 3
    """Of a window, before its median counts."""
    windows: int = 3
    """In a row, before a replica is set aside."""
    slow_factor: float = 3.0
    """Its median above this multiple of its peers' is slow."""
    failure_share: float = 0.2
    """Of its calls in the breaker's window; the breaker opens at its own, higher share."""
    failure_factor: float = 4.0
    """Its share of failures above this multiple of its peers' is theirs no more."""
    min_calls: int = 10
    """Of a replica, and of its peers together, before their failures are compared."""

    def __post_init__(self) -> None:
        if min(self.min_samples, self.windows, self.min_calls) < 1 or self.window_s <= 0:
            raise ValueError(f"outliers need counts of at least 1 and window_s > 0: {self}")
        if min(self.slow_factor, self.failure_factor) <= 1 or not 0 < self.failure_share <= 1:
            raise ValueError(f"outliers need factors above 1 and failure_share in (0, 1]: {self}")


class Outliers:
    __slots__ = ("_ejections", "_failing", "_slow", "config")

    def __init__(self, ejections: Ejections, config: OutliersConfig) -> None:
        self._ejections = ejections
        self.config = config
        self._slow: dict[str, int] = {}
        """By replica: slow windows in a row."""
        self._failing: dict[str, int] = {}

    def judge(self, replicas: Sequence[Replica], now: float) -> None:
        """Compare the replicas of one model, and set aside who is unlike the others."""
        up = [replica for replica in replicas if replica.serves]
        if not self.config.enabled or len(up) < 2:
            return
        tallies = [replica.breaker.tallies(now) for replica in up]
        calls, bad = sum(each[0] for each in tallies), sum(each[1] for each in tallies)
        for replica, own in zip(up, tallies, strict=True):
            self._judge_failures(replicas, replica, own, (calls - own[0], bad - own[1]), now)
        closed = 0
        # Who has waited longest for it goes first.
        for replica in sorted(up, key=_closed_at):
            if closed < MOST_CLOSED and replica.pace is not None and replica.pace.close(self.config.min_samples, now):
                closed += 1
                self._judge_pace(replicas, replica, replica.pace.slowness(now), now)

    def _judge_pace(self, replicas: Sequence[Replica], replica: Replica, ratio: float, now: float) -> None:
        if self._is_enough(self._slow, replica.name, ratio > self.config.slow_factor):
            evidence = f"{ratio:.1f} × as slow as its peers in {self.config.windows} windows"
            self._eject(replicas, replica, evidence, now)

    def _judge_failures(
        self, replicas: Sequence[Replica], replica: Replica, own: tuple[int, int], peers: tuple[int, int], now: float
    ) -> None:
        """``own``, ``peers``: calls and bad ones among them."""
        config, (calls, bad), (theirs, their_bad) = self.config, own, peers
        is_failing = (
            min(calls, theirs) >= config.min_calls
            and bad >= config.failure_share * calls
            and bad / calls > config.failure_factor * max(LEAST_PEERS_SHARE, their_bad / theirs)
        )
        if self._is_enough(self._failing, replica.name, is_failing):
            evidence = f"{bad} of {calls} calls failed, of its peers' {their_bad} of {theirs}"
            self._eject(replicas, replica, evidence, now)

    def _is_enough(self, rows: dict[str, int], name: str, is_bad: bool) -> bool:
        rows[name] = rows.get(name, 0) + 1 if is_bad else 0
        return rows[name] >= self.config.windows

    def _eject(self, replicas: Sequence[Replica], replica: Replica, evidence: str, now: float) -> None:
        if self._ejections.eject(replicas, replica, OUTLIER, evidence, now):
            self._slow[replica.name] = self._failing[replica.name] = 0
            if replica.pace is not None:
                replica.pace.forget()

    def keep(self, names: set[str]) -> None:
        """Forget all others: they are gone."""
        for rows in (self._slow, self._failing):
            for name in [name for name in rows if name not in names]:
                del rows[name]


def _closed_at(replica: Replica) -> float:
    return 0.0 if replica.pace is None else max(replica.pace.first_at, replica.pace.whole_at)
