"""A part of a run: what is sent, how, and for how long."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from tidegate.load.source import Source


class Kind(StrEnum):
    """What the phase is for; gates and pages look for it."""

    SINGLE = "single"
    """One request after another (SPEC S1-55)."""
    STEP = "step"
    """One step of a ramp: so much load, held."""
    BURST = "burst"
    SOAK = "soak"
    LOAD = "load"
    """Any other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    name: str
    """Unique in its plan."""
    kind: Kind = Kind.LOAD
    source: Source
    duration_s: float
    """Asks that are due later, or would begin later, are not sent; those under way are waited for."""
    users: int | None = None
    """A closed loop of so many users; None: asks are sent when they are due, whatever became of those before."""
    count: int | None = None
    """A closed loop ends after so many asks, at the latest after ``duration_s``."""
    rate_per_s: float | None = None
    """Mean rate that is meant, for the report; None where it is not known beforehand."""
    spike: tuple[float, float] | None = None
    """When in it the load is above the rest: begin and end, seconds from its beginning."""
