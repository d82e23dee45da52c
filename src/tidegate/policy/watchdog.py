"""Which replica has work and does not get on with it, though its engine answers that it is well.

It is stalled when nothing moved (``Motion``) for ``stall_s`` while it has attempts of ours, and

* its readings move while it works, so that they tell, and it never stood still for a third of that before; or
* an attempt lasts more than ``blind_factor`` × what answers like it took at most, on any replica of the model.

Of an engine that tells nothing and has answered too little to compare with, it cannot be known: a long prefill looks
the same. There the timeouts act, request by request. A replica that moves again is taken back at the next look.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tidegate.policy.ejections import Ejections
from tidegate.policy.marks import NO_PROGRESS
from tidegate.policy.permit import Permit, PermitState
from tidegate.policy.replica import Replica

GAPS = 3.0
"""An engine that stood still for a while and moved on by itself may do so again, for this many times as long."""
FEW_ANSWERS = 4
"""From so many on their length and time are compared with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchdogConfig:
    enabled: bool = True
    stall_s: float = 10.0
    """So long nothing may move while there is work."""
    blind_factor: float = 3.0
    """Where readings tell nothing: an attempt may last this multiple of what its like took."""

    def __post_init__(self) -> None:
        if self.stall_s <= 0 or self.blind_factor <= 1:
            raise ValueError(f"the watchdog needs stall_s > 0 and blind_factor > 1: {self}")


class Watchdog:
    __slots__ = ("_ejections", "config")

    def __init__(self, ejections: Ejections, config: WatchdogConfig) -> None:
        self._ejections = ejections
        self.config = config

    def look(self, replicas: Sequence[Replica], now: float) -> None:
        """Set stalled replicas of one model aside."""
        if not self.config.enabled:
            return
        for replica in replicas:
            still_s = self.still_s(replicas, replica, now)
            if still_s and replica.serves:
                count = len(replica.permits)
                self._ejections.eject(
                    replicas, replica, NO_PROGRESS, f"no token for {still_s:.0f} s with {count} requests on it", now
                )

    def still_s(self, replicas: Sequence[Replica], replica: Replica, now: float) -> float:
        """For how long a stalled replica has not moved; 0.0: it is not stalled, or that cannot be known."""
        live = [each for each in replica.permits.values() if each.state is not PermitState.ABORTING]
        if not live:
            return 0.0
        still_s = now - max(replica.motion.at, min(each.admitted_at for each in live))
        if still_s < self.config.stall_s:
            return 0.0
        if replica.motion.is_told:
            return still_s if still_s > GAPS * replica.motion.gap_s else 0.0
        overdue = any(self._is_overdue(replicas, replica, permit, now) for permit in live)
        return still_s if overdue else 0.0

    def _is_overdue(self, replicas: Sequence[Replica], replica: Replica, permit: Permit, now: float) -> bool:
        if permit.pending_tokens and permit.state is PermitState.RESERVED:
            fits = [each.first_token for each in replicas if each.first_token.samples >= FEW_ANSWERS]
            units = max(permit.pending_tokens, replica.pending_tokens)
        else:
            fits = [each.whole for each in replicas if each.whole.samples >= FEW_ANSWERS]
            units = permit.sequences * permit.expected_tokens
        usual_s = max([each.predict_s(units) for each in fits], default=0.0)
        return 0.0 < usual_s * self.config.blind_factor < now - permit.admitted_at
