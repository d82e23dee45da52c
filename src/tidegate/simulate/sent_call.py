"""One try of a call on one replica, from the driver's side."""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.policy.permit import Permit
from tidegate.simulate.replica import SimulatedReplica
from tidegate.simulate.visit import Call


@dataclass(slots=True)
class SentCall:
    """Live from submission until it is settled; the engine knows it by its permit's id."""

    call: Call
    permit: Permit
    replica: SimulatedReplica
    degraded: str | None
    has_token: bool = False
