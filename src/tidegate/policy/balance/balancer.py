"""Chooses the replica: which ones are looked at, and what is known of each beyond its load.

* Up to ``MOST_SCANNED`` replicas are all looked at; of more, two drawn ones, of two failure domains where there are
  two, and those that hold the most of the prompt; if none of these is open, all.
* Who holds a part of the prompt has less to read, which the cost knows. It knows so only of a replica that has no
  more than ``bounded_load`` × the mean of running sequences (consistent hashing with bounded loads, 1608.01350):
  a hot prefix spreads instead of piling up. docs/policies/balance.md has why 1.5 and not KubeAI's 1.25.
* A retry goes to another failure domain than the attempt before, where one is open.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from tidegate.policy.balance.cost import FIRST, SECOND, least_cost, spread
from tidegate.policy.balance.prefixes import Prefixes
from tidegate.policy.decisions import Reason
from tidegate.policy.replica import Replica
from tidegate.policy.request import Request

MOST_SCANNED = 16
MOST_HOLDERS = 2
"""Of those that hold a part of the prompt, how many are looked at beside the drawn ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BalanceConfig:
    prefix_affinity: bool = True
    """Count the part of a prompt that a replica has lately read as read."""
    bounded_load: float = 1.5
    """Not of a replica that runs more than this multiple of the mean of running sequences."""
    slow_start_s: float = 10.0
    """A replica that is new, has come back or whose breaker has closed reaches its full part of the traffic within
    this time; 0: at once."""

    panic_share: float = 0.5
    """When breakers and marks leave fewer than this share of the replicas that are up, the others get what these have
    no room for, in spite of breakers and marks (Envoy's panic threshold). 0: only when they leave none."""

    def __post_init__(self) -> None:
        if not 0 <= self.panic_share <= 1:
            raise ValueError(f"balance.panic_share lies in [0, 1]: {self}")
        if self.bounded_load < 1 or self.slow_start_s < 0:
            raise ValueError(f"balance needs bounded_load >= 1 and slow_start_s >= 0: {self}")


class Balancer:
    __slots__ = ("_domains", "_replicas", "config", "prefixes")

    def __init__(self, config: BalanceConfig) -> None:
        self.config = config
        self.prefixes = Prefixes()
        self._replicas: list[Replica] = []
        """Those of one failure domain stand together."""
        self._domains: list[tuple[int, int]] = []
        """Of the replica at the same index, where its domain begins and how many it has."""

    def follow(self, replicas: list[Replica]) -> None:
        """The replicas, or their domains, have changed."""
        left = set(self._replicas) - set(replicas)
        self._replicas = sorted(replicas, key=lambda replica: replica.config.domain)
        names = [replica.config.domain for replica in self._replicas]
        self._domains = [(names.index(name), names.count(name)) for name in names]
        if left:
            self.prefixes.keep(replicas)

    def choose(self, request: Request, output_tokens: int, now: float, avoid: str | None = None) -> Replica | Reason:
        """The replica of least cost whose gates are all open, or the gate that bars the way.

        ``avoid``: the replica where an attempt failed.
        """
        replicas = self._replicas
        if len(replicas) == 1 and avoid is None:
            why = replicas[0].gate(request, output_tokens, now)
            return replicas[0] if why is None else why
        cached: dict[Replica, int] | None = None
        if avoid is not None:
            # A retry cannot wait for who has read its prompt, so it does not ask.
            found = self._elsewhere(request, output_tokens, now, avoid)
            if isinstance(found, Replica):
                return found
        elif request.prefixes and self.config.prefix_affinity:
            cached = self._cached(request)
        if len(replicas) > MOST_SCANNED:
            found = least_cost(self._sample(request, cached), request, output_tokens, now, avoid, cached)
            if isinstance(found, Replica):
                return found
        return least_cost(replicas, request, output_tokens, now, avoid, cached)

    def choose_suspect(
        self, request: Request, output_tokens: int, now: float, avoid: str | None = None
    ) -> Replica | Reason:
        """The replica of least cost of those that a breaker or a mark keeps away, as if it did not."""
        suspects = [replica for replica in self._replicas if replica.serves and not replica.is_usable(now)]
        for replica in suspects:
            replica.is_excused = True
        found = least_cost(suspects, request, output_tokens, now, avoid)
        for replica in suspects:
            replica.is_excused = False
        return found

    def placed(self, request: Request, replica: Replica) -> int:
        """The request goes there; returns how much of its prompt need not be read."""
        if len(self._replicas) == 1 or not request.prefixes or not self.config.prefix_affinity:
            return 0
        return self.prefixes.note(request, replica)

    def _cached(self, request: Request) -> dict[Replica, int] | None:
        """What is held of the prompt by replicas that are not above the bound on load."""
        cached = self.prefixes.cached_tokens(request)
        if not cached:
            return None
        replicas = self._replicas
        running = 1
        for replica in replicas:
            running += replica.in_flight
        most = ceil(self.config.bounded_load * running / len(replicas))
        return {replica: tokens for replica, tokens in cached.items() if replica.in_flight < most}

    def _elsewhere(self, request: Request, output_tokens: int, now: float, avoid: str) -> Replica | Reason:
        """In another failure domain than that of ``avoid``."""
        domains = [replica.config.domain for replica in self._replicas if replica.name == avoid]
        others = [replica for replica in self._replicas if replica.config.domain not in domains]
        if len(others) > MOST_SCANNED:
            drawn = {spread(request.draw, purpose, len(others)): None for purpose in (FIRST, SECOND)}
            others = [others[index] for index in drawn]
        return least_cost(others, request, output_tokens, now, avoid)

    def _sample(self, request: Request, cached: dict[Replica, int] | None) -> list[Replica]:
        replicas, count = self._replicas, len(self._replicas)
        first = spread(request.draw, FIRST, count)
        begin, size = self._domains[first]
        if size == count:
            second = spread(request.draw, SECOND, count)
        else:
            second = (begin + size + spread(request.draw, SECOND, count - size)) % count
        drawn = [replicas[first], replicas[second]]
        if cached:
            drawn += sorted(cached, key=lambda replica: -cached[replica])[:MOST_HOLDERS]
        return [*dict.fromkeys(drawn)]
