"""How much KV memory of one replica is promised to whom.

A request reserves, all or nothing and before it is sent,

    sequences × ⌈(prompt + reserved output) ÷ slot_tokens⌉ slots,

where slot_tokens = slot_bytes ÷ KV bytes per token (SPEC S0-06, S0-09). Rounding is per sequence,
because no engine shares a block, or a llama.cpp sequence, between two answers.

Mode ``worst_case`` reserves prompt + max_tokens, so Σ reserved ≤ pool holds at every moment and the engine
has no reason to preempt (vLLM preempts when running requests outgrow the pool, measured in the project's
engine notes). Mode ``learned`` reserves what such answers turn out to need, and more while they run
(``expectation``). A request that sets no bound gets ``default_max_tokens`` written into it where the context
has room for that; else its worst case is the whole context.

States (S0-09): Free → Reserved (admitted) → Used (first byte seen) → Free. Foreign load, which
readings show and our own permits do not explain, counts as reserved.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tidegate.policy.reading import Capacity
from tidegate.policy.request import ESTIMATE_SLACK, Request


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotsConfig:
    enabled: bool = True
    mode: Literal["worst_case", "learned"] = "worst_case"
    quantile: float = 0.5
    """``learned``: share of the streams for which the first reservation is to be enough. The others get more
    while they run; simulated on a tight pool, 0.3 to 0.9 had no preemption, and 0.5 served the most in time."""
    default_max_tokens: int = 1024
    """Output bound written into a request that sets none. Six times the mean answer of the
    Azure 2023 conversation trace (129 tokens at the median, 601 at P99)."""

    def __post_init__(self) -> None:
        if self.default_max_tokens < 1:
            raise ValueError(f"slots.default_max_tokens must be at least 1, not {self.default_max_tokens}")
        if not 0 < self.quantile < 1:
            raise ValueError(f"slots.quantile must lie between 0 and 1, not {self.quantile}")

    @property
    def learns(self) -> bool:
        return self.mode == "learned"

    def bound(self, request: Request, context_tokens: int | None) -> int | None:
        """The output bound to write into a request, or None: it has one, or prompt and bound may pass the
        context. Engines refuse such a sum, and without a bound end by themselves where the context does."""
        if request.max_tokens is not None:
            return None
        most = request.prompt_tokens if request.prompt_exact else request.prompt_tokens * ESTIMATE_SLACK
        fits = context_tokens is None or most + self.default_max_tokens <= context_tokens
        return self.default_max_tokens if fits else None

    def output_tokens(self, request: Request, context_tokens: int | None) -> int:
        """Output tokens of one sequence in the worst case."""
        if request.max_tokens is not None:
            return request.max_tokens
        bound = self.bound(request, context_tokens)
        if bound is None and context_tokens is not None:
            return max(1, context_tokens - request.prompt_tokens)
        return self.default_max_tokens


class Slots:
    """The ledger of one replica. ``total`` is None while the pool is unknown: then it only counts."""

    __slots__ = ("foreign", "in_use", "overdrafts", "reserved", "slot_tokens", "total")

    def __init__(self, capacity: Capacity) -> None:
        self.total = capacity.slots
        self.slot_tokens = capacity.slot_tokens
        self.reserved = 0
        self.in_use = 0
        self.foreign = 0
        self.overdrafts = 0
        """Attempts whose tokens outgrew their reservation (an estimate that was too low)."""

    @property
    def held(self) -> int:
        return self.reserved + self.in_use

    @property
    def free(self) -> int | None:
        return None if self.total is None else max(0, self.total - self.held - self.foreign)

    def needed(self, prompt_tokens: int, output_tokens: int, sequences: int) -> int:
        return sequences * -(-(prompt_tokens + output_tokens) // self.slot_tokens)

    def fits(self, slots: int) -> bool:
        return self.total is None or self.reserved + self.in_use + self.foreign + slots <= self.total

    def start(self, slots: int) -> None:
        """Reserved → Used: the engine's first byte has come."""
        self.reserved -= slots
        self.in_use += slots

    def release(self, slots: int, *, started: bool) -> None:
        if started:
            self.in_use -= slots
        else:
            self.reserved -= slots

    def note_usage(self, slots: int, tokens: int) -> None:
        """Compare what an attempt really used with what it had reserved."""
        if tokens > slots * self.slot_tokens:
            self.overdrafts += 1

    def resize(self, capacity: Capacity) -> None:
        self.total = capacity.slots
        self.slot_tokens = capacity.slot_tokens

    def view(self) -> dict[str, int | None]:
        return {
            "total": self.total,
            "slot_tokens": self.slot_tokens,
            "free": self.free,
            "used": self.in_use,
            "reserved": self.reserved,
            "foreign": self.foreign,
            "overdrafts": self.overdrafts,
        }
