"""What a fault proxy does to the bytes that pass it, and when it lets each piece go."""

from __future__ import annotations

from enum import StrEnum

import msgspec

RETRANSMISSION_S = 0.2
"""What a lost packet costs where loss is imitated: Linux waits at least so long before it sends again (TCP_RTO_MIN)."""


class Cut(StrEnum):
    """Ways in which a connection is there and does not work."""

    NONE = "none"
    STALL = "stall"
    """Nothing moves in either direction; it goes on when the cut ends."""
    HALF_OPEN = "half-open"
    """What the server says, the end of its connection included, is lost; the client is not told."""
    BLACK_HOLE = "black-hole"
    """Connections are accepted, what they send is thrown away, and the server never hears of them."""


class Pages(StrEnum):
    """What becomes of GET requests, which is how an engine is asked how it does. Answers to POSTs are left alone."""

    FRESH = "fresh"
    FROZEN = "frozen"
    """The last answer to each is given again and again."""
    FAILING = "failing"
    """503, but for ``/health``: it is alive, and does not tell its figures."""
    SILENT = "silent"
    """Taken, and never answered."""


class Impairment(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """In each direction. Nothing of it touches the service's health unless its pages are asked for here too."""

    delay_s: float = 0.0
    jitter_s: float = 0.0
    """Evenly spread around ``delay_s``; order is kept, as in a queue."""
    loss_share: float = 0.0
    """Of packets. Where there are none (a proxy of streams) so many pieces come ``RETRANSMISSION_S`` late."""
    reset_share: float = 0.0
    """Of pieces: both connections are reset in its place."""
    bytes_per_s: float = 0.0
    """0: as fast as it goes."""
    cut: Cut = Cut.NONE
    pages: Pages = Pages.FRESH
    """Of connections that begin with it."""


NOTHING = Impairment()


class Releases:
    """When the pieces of one direction go on. ``draw`` is a number in [0, 1)."""

    __slots__ = ("_free_at",)

    def __init__(self) -> None:
        self._free_at = 0.0

    def at(self, impairment: Impairment, now: float, size_bytes: int, draw: float) -> float:
        """Not before the one in front of it, nor while that is still on the wire."""
        spread_s = impairment.jitter_s * (2.0 * draw - 1.0)
        begins = max(self._free_at, now + max(0.0, impairment.delay_s + spread_s))
        takes_s = size_bytes / impairment.bytes_per_s if impairment.bytes_per_s else 0.0
        self._free_at = begins + takes_s
        return self._free_at
