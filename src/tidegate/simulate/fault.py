"""What goes wrong with an engine in a scenario, and when."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class FaultKind(Enum):
    CRASH = "crash"
    """Everything in flight is lost, connections are refused."""
    RESTART = "restart"
    HANG = "hang"
    """Connections are accepted and nothing is computed."""
    RESUME = "resume"
    SLOW = "slow"
    """Every step takes ``factor`` times as long; factor 1 ends it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    at: float
    replica: int
    """Index in the scenario's engines."""
    kind: FaultKind
    factor: float = 1.0
