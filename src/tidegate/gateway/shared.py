"""What all exchanges of a data process share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tidegate.gateway.counting import Ratios
from tidegate.gateway.driver import Driver
from tidegate.gateway.journal import Journal
from tidegate.gateway.pool import Pool
from tidegate.gateway.settings import Timers

if TYPE_CHECKING:
    from tidegate.gateway.exchange import Exchange


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
    live: set[Exchange] = field(default_factory=set)
    """Every exchange that is not over; the ticker looks at them."""
    is_draining: bool = False
    emptied: asyncio.Event = field(default_factory=asyncio.Event)
    """Set while draining, once nothing is live."""

    def leave(self, exchange: Exchange) -> None:
        """``exchange`` is over."""
        self.live.discard(exchange)
        if self.is_draining and not self.live:
            self.emptied.set()
