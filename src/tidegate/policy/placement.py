"""Commits a request to a replica, in one step: slots, limit, probe, pending prefill, and what the engine is told."""

from __future__ import annotations

from tidegate.policy.attempts import Attempts
from tidegate.policy.decisions import Admit, Alteration
from tidegate.policy.hedging import Hedging
from tidegate.policy.record import Record
from tidegate.policy.replica import Replica
from tidegate.policy.retries import RetryAllowance
from tidegate.policy.slots import SlotsConfig
from tidegate.policy.upstream import Upstream


class Placement:
    """Owned by ``Path``."""

    __slots__ = ("allowance", "attempts", "hedging", "slots")

    def __init__(self, attempts: Attempts, allowance: RetryAllowance, hedging: Hedging, slots: SlotsConfig) -> None:
        self.attempts = attempts
        self.allowance = allowance
        self.hedging = hedging
        self.slots = slots

    def place(self, record: Record, upstream: Upstream, replica: Replica, output_tokens: int, now: float) -> Admit:
        if record.request.prefixes:
            record.cached_tokens = upstream.balancer.placed(record.request, replica)
        permit = self.attempts.begin(record, replica, output_tokens, now)
        if record.attempts == 1:
            self.allowance.admitted()
            if self.hedging.config.enabled:
                self.hedging.admitted()
        alteration = record.alteration
        if alteration is None and replica.slots.total is not None:
            bound = self.slots.bound(record.request, upstream.context_tokens)
            if bound is not None:
                alteration = Alteration(bound)
        return Admit(permit, alteration, record.degraded)
