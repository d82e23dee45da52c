"""One phase, or one turn of it, as it was played against one target."""

from __future__ import annotations

from dataclasses import dataclass, field

from tidegate.load.gap_counts import GapCounts
from tidegate.load.sample import Sample


@dataclass(slots=True, kw_only=True)
class Played:
    phase: str
    target: str
    began_s: float
    """Since the run began."""
    ended_s: float
    """The last answer came."""
    sending_s: float = 0.0
    """For how long asks were sent: the turn's duration, less where it was ended early. 0: told by the other times."""
    samples: list[Sample]
    gaps: GapCounts
    """Between reads that brought a part of an answer."""
    token_gaps: GapCounts
    """The same per event: a gap after which k events came together counts k times as its k-th part."""
    cpu_s: float = 0.0
    """Of all generating processes, while it was played."""
    busiest_share: float = 0.0
    """CPU of the busiest of them in its busiest five seconds, of the wall-clock time: above 0.8 it was the generator
    that was measured."""
    lags_s: list[float] = field(default_factory=list)
    """How late each ask of an open loop was sent."""
    wake_lags_s: list[float] = field(default_factory=list)
    """How late the generator's processes woke for a tick of their own, every 50 ms: a read is seen as late as that."""
