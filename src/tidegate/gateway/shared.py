"""What all exchanges of a data process share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from tidegate.gateway.counting import Ratios
from tidegate.gateway.driver import Driver
from tidegate.gateway.journal import Journal
from tidegate.gateway.pool import Pool
from tidegate.gateway.running import Running
from tidegate.gateway.settings import Timers


@dataclass(slots=True)
class Shared:
    """Owned by ``Gateway``, which swaps ``pools`` and ``timers`` on a reload."""

    driver: Driver
    journal: Journal
    ratios: Ratios
    timers: Timers
    poll_soon: Callable[[str], None]
    """Ask the parent to read this replica promptly: an abort waits for its confirmation."""
    pools: dict[str, Pool] = field(default_factory=dict)
    """By replica name."""
    live: set[Running] = field(default_factory=set)
    """Everything that is not over; the ticker looks at it."""
    is_draining: bool = False
    emptied: asyncio.Event = field(default_factory=asyncio.Event)
    """Set while draining, once nothing is live."""

    def leave(self, running: Running) -> None:
        """``running`` is over."""
        self.live.discard(running)
        if self.is_draining and not self.live:
            self.emptied.set()
