"""What the crew and its workers say to each other, framed as between the gateway's processes."""

from __future__ import annotations

from tidegate.gateway.messages import Message
from tidegate.load.sample import Sample


class Play(Message):
    """Down: prepare to send a part of a phase; ``Prepared`` or ``Broken`` answers."""

    task: bytes
    """Pickled ``Task``: a source is code as much as data."""
    zero: float
    """The clock's time when the run began."""
    grace_s: float


class Begin(Message):
    """Down: at ``began`` of the machine's monotonic clock, which all its processes share. ``Batch``es answer, the last
    of which is a ``Finished``."""

    began: float


class Halt(Message):
    """Down: end the phase early."""


class Prepared(Message):
    """Up: the first requests are ready."""


class Batch(Message):
    """Up: what ended since the last one, and counts since the phase began."""

    at: float
    """The clock's time."""
    samples: list[Sample]
    due: int
    sent: int
    in_flight: int
    wake_lags_s: list[float]
    """See ``Played``; those since the last batch."""


class Finished(Message):
    """Up: the last answer has come, and every sample was told."""

    gaps: list[tuple[int, int]]
    """Buckets of ``GapCounts``."""
    token_gaps: list[tuple[int, int]]
    cpu_s: float
    busy_share: float
    """CPU time of the wall-clock time, in the busiest five seconds."""


class Broken(Message):
    """Up: the worker could not go on; it ends."""

    problem: str


CrewDown = Play | Begin | Halt
CrewUp = Prepared | Batch | Finished | Broken
