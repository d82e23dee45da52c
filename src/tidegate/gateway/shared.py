"""What all exchanges of a data process share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from tidegate.gateway.continuation import Terms
from tidegate.gateway.counting import Ratios
from tidegate.gateway.driver import Driver
from tidegate.gateway.journal import Journal
from tidegate.gateway.overlength import Overlengths
from tidegate.gateway.pool import Pool
from tidegate.gateway.running import Running
from tidegate.gateway.settings import Timers
from tidegate.gateway.tally import Tally
from tidegate.gateway.watching import Outputs
from tidegate.policy.output.output_config import OutputConfig
from tidegate.policy.request import Request
from tidegate.policy.token_source import TokenSource
from tidegate.wire.body import Body

_TOKENIZER = TokenSource.TOKENIZER


@dataclass(slots=True)
class Shared:
    """Owned by ``Gateway``, which swaps ``pools`` and ``timers`` on a reload."""

    driver: Driver
    journal: Journal
    ratios: Ratios
    timers: Timers
    tally: Tally
    poll_soon: Callable[[str], None]
    """Ask the parent to read this replica promptly: an abort waits for its confirmation."""
    pools: dict[str, Pool] = field(default_factory=dict)
    """By replica name."""
    continued: dict[str, Terms] = field(default_factory=dict)
    """By upstream: how its streams go on elsewhere when their replica dies. Empty: none does."""
    overlengths: Overlengths | None = None
    """What becomes of prompts that are too long; None: they are refused."""
    outputs: Outputs = field(default_factory=lambda: Outputs(OutputConfig(), {}))
    """Which answers are looked into."""
    live: set[Running] = field(default_factory=set)
    """Everything that is not over; the ticker looks at it."""
    is_draining: bool = False
    emptied: asyncio.Event = field(default_factory=asyncio.Event)
    """Set while draining, once nothing is live."""

    def take_usage(self, request: Request, path: str, body: Body, prompt_tokens: int) -> None:
        """An engine reported how many prompt tokens it charged for, all prompts together."""
        if prompt_tokens != (request.estimated_tokens or request.prompt_tokens):
            self.ratios.learn(request.upstream, body, prompt_tokens)
        counted = request.counted_tokens
        if request.counted_by is _TOKENIZER and counted != prompt_tokens and counted is not None and body.prompts == 1:
            self.tally.exactness.contradicted(request.upstream, path, counted, prompt_tokens)

    def leave(self, running: Running) -> None:
        """``running`` is over."""
        self.live.discard(running)
        if self.is_draining and not self.live:
            self.emptied.set()
