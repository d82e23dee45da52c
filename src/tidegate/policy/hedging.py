"""Whether a stream whose first byte is late runs a second time on another replica; the first to answer wins.

    due        its first byte has not come after the ``quantile`` of first bytes of its kind (model, class, length)
    allowed    ``budget`` of the requests that are admitted, as a token bucket of at most ``MOST``
    only if    less than ``most_load`` of the sequences and of the KV memory is in use

Hedged requests (Dean and Barroso, The Tail at Scale, 2013) cut the tail that one slow replica makes, and pay for it
with work done twice: so never for more than a percent or two of the requests, never on a fleet that has something
better to do, and only before the first token, after which nothing can be taken back. The loser's abort is confirmed
like any other, and its slots are held until then. Off by default: where an engine bills by the token, a hedge is billed
twice.
"""

from __future__ import annotations

from dataclasses import dataclass

MOST = 10.0
"""Hedges that can be saved up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HedgeConfig:
    enabled: bool = False
    """Off: work that is done twice may be billed twice."""
    quantile: float = 0.95
    """A first byte that is later than this part of its kind's is late."""
    budget: float = 0.01
    """Share of the requests that may run twice."""
    most_load: float = 0.7
    """Fuller replicas have something better to do."""

    def __post_init__(self) -> None:
        if not (0.5 <= self.quantile < 1 and 0 < self.budget <= 0.5 and 0 < self.most_load <= 1):
            raise ValueError(f"hedges need 0.5 <= quantile < 1, 0 < budget <= 0.5 and 0 < most_load <= 1: {self}")


class Hedging:
    """The budget. Owned by ``Path``."""

    __slots__ = ("config", "left", "made")

    def __init__(self, config: HedgeConfig) -> None:
        self.config = config
        self.left = 1.0
        self.made = 0

    def admitted(self) -> None:
        """A request went to its first replica."""
        self.left = min(MOST, self.left + self.config.budget)

    def may(self, load: float) -> bool:
        """Whether there is one left, and room for it. Takes nothing."""
        return self.config.enabled and self.left >= 1.0 and load < self.config.most_load

    def spend(self) -> None:
        self.left -= 1.0
        self.made += 1
