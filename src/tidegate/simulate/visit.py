"""What one user asks for, the calls their client makes for it, and how it ended."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

MODEL = "model"
"""What the only model of a scenario is called."""

BLOCK_TOKENS = 512
"""Tokens of one of ``Demand.blocks``: Mooncake's traces have them so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """Drawn by a scenario before any policy runs, so that all policies meet the same traffic."""

    index: int
    at: float
    """First arrival, seconds from the start."""
    prompt_tokens: int
    output_tokens: int
    """What the model will say. No policy sees it."""
    max_tokens: int
    """The bound that the client sends; every policy sees it."""
    label: str
    """Class in the report, such as ``short``. No policy sees it."""
    patience_s: float
    """The client leaves when no token has come after this time."""
    retry_delay_s: float
    """Its pause before it calls again."""
    draw: int
    """64 random bits that go with the request."""
    blocks: tuple[int, ...] = ()
    """An id for each whole block of the prompt that others may begin with too; it stands for all before it as well."""
    model: str = MODEL
    """Which upstream it is for."""
    tenant: str = "default"
    """Whose key the client sends."""
    class_hint: str | None = None
    """The client's ``x-tidegate-class``; every policy sees it."""
    ttft_slo_s: float | None = None
    """An objective of its own, for the report; None: the scenario's. A policy knows it by the class hint at most."""
    worthless_after_s: float | None = None
    """Seconds from the first call after which the answer is no good any more; the client says so (a deadline)."""
    chain: int | None = None
    """Of calls that one user makes one after the other: which chain this is a call of."""
    then: Demand | None = None
    """The next call of the chain, made when this one was answered; its ``at`` is the pause before it."""


class Ending(Enum):
    """How a visit, or one call of it, ended."""

    ANSWERED = "answered"
    TIMEOUT = "timeout"
    """The client left, or the gateway or engine said that time was up."""
    REFUSED = "refused"
    ENGINE = "engine"
    """The engine was unreachable, failed or stopped in the middle of the answer."""


@dataclass(slots=True)
class Visit:
    """One user's request, over all calls that their client makes for it."""

    demand: Demand
    calls: int = 0
    ending: Ending | None = None
    """None while it lives, and at the end of the run if it never ended."""
    ended_at: float = 0.0
    first_token_at: float | None = None
    output_tokens: int = 0
    degraded: str | None = None

    @property
    def is_answered(self) -> bool:
        return self.ending is Ending.ANSWERED

    @property
    def is_degraded(self) -> bool:
        """Answered by a rung of the degradation ladder."""
        return self.degraded is not None


@dataclass(slots=True)
class Call:
    """One HTTP request of a visit."""

    id: int
    visit: Visit
    at: float
    is_open: bool = True
    first_token_at: float | None = None
    was_retried: bool = False
    """The gateway has tried it on a second replica."""

    @property
    def draw(self) -> int:
        """64 bits of this call alone (an odd multiplier gives each call of a visit another value)."""
        return (self.visit.demand.draw + self.id * 0x9E3779B97F4A7C15) & 0xFFFFFFFFFFFFFFFF
