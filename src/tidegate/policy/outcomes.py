"""How an attempt can end, and what each ending does to every policy.

``EFFECTS`` is the only place where that is said; the policies read their column.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Outcome(StrEnum):
    """A closed set: every attempt ends in exactly one of these."""

    # By value, which is C; Enum's own hash is a Python function, and EFFECTS is read for every request.
    __hash__ = str.__hash__

    OK = "ok"
    CLIENT_LEFT = "client_left"
    CLIENT_FAULT = "client_fault"
    """The engine answered 4xx: the request itself is wrong."""
    PUSHBACK = "pushback"
    """429, a busy 503 or 529: the engine is full, not broken."""
    CONNECT_FAILED = "connect_failed"
    ENGINE_ERROR = "engine_error"
    """5xx, or the connection closed before the first byte."""
    CUT = "cut"
    """The connection ended after the first byte and before the end of the answer."""
    FIRST_BYTE_TIMEOUT = "first_byte_timeout"
    GAP_TIMEOUT = "gap_timeout"
    TOTAL_TIMEOUT = "total_timeout"
    INVALID_OUTPUT = "invalid_output"
    OUTRUN = "outrun"
    """Another attempt of the same request answered first: never the last outcome of a request."""
    SHUTDOWN = "shutdown"
    """We stopped before the answer was complete."""


class Verdict(StrEnum):
    """What an ending says about the replica."""

    GOOD = "good"
    BAD = "bad"
    SILENT = "silent"


class LimitSignal(StrEnum):
    """What an ending tells the adaptive limit."""

    SAMPLE = "sample"
    DROP = "drop"
    IGNORE = "ignore"


class TimingSignal(StrEnum):
    """Whether the latency of this attempt may teach the dynamic timeouts."""

    SAMPLE = "sample"
    CENSORED = "censored"
    """The true value is at least what was seen: recorded at the timeout, never below it."""
    IGNORE = "ignore"


class QuotaSignal(StrEnum):
    """What happens to the tokens that were charged at arrival."""

    SETTLE = "settle"
    """Charge what was used."""
    REFUND = "refund"
    """Charge nothing."""


@dataclass(frozen=True, slots=True)
class Effect:
    """One row of the table."""

    breaker: Verdict
    limit: LimitSignal
    timing: TimingSignal
    quota: QuotaSignal
    retry: bool
    """The gateway may try another replica, before the first byte and within the allowance."""
    counts_against_client: bool
    """A timeout that the session's high-risk mark counts (SPEC S0-41)."""
    resume: bool = False
    """A stream that ended so may be continued on another replica, where its route asks for that."""
    mend: bool = False
    """Nothing came, and the ladder may have something instead where no other replica may try."""


_G, _B, _S = Verdict.GOOD, Verdict.BAD, Verdict.SILENT
_SAMPLE, _DROP, _IGNORE = LimitSignal.SAMPLE, LimitSignal.DROP, LimitSignal.IGNORE
_T, _C, _N = TimingSignal.SAMPLE, TimingSignal.CENSORED, TimingSignal.IGNORE
_SETTLE, _REFUND = QuotaSignal.SETTLE, QuotaSignal.REFUND

# A client that leaves says nothing about the replica (R4), but its latency is censored: it waited
# at least this long. A pushback moves the limit and never the breaker (R4). Only failures that
# cannot have produced output are retried here; timeouts belong to the SDK (SPEC C7).
EFFECTS: dict[Outcome, Effect] = {
    Outcome.OK: Effect(_G, _SAMPLE, _T, _SETTLE, False, False),
    Outcome.CLIENT_LEFT: Effect(_S, _IGNORE, _C, _SETTLE, False, False),
    Outcome.CLIENT_FAULT: Effect(_S, _IGNORE, _N, _REFUND, False, False),
    Outcome.PUSHBACK: Effect(_S, _DROP, _N, _REFUND, True, False, mend=True),
    Outcome.CONNECT_FAILED: Effect(_B, _IGNORE, _N, _REFUND, True, False, mend=True),
    Outcome.ENGINE_ERROR: Effect(_B, _IGNORE, _N, _REFUND, True, False, mend=True),
    Outcome.CUT: Effect(_B, _IGNORE, _N, _SETTLE, False, False, True),
    Outcome.FIRST_BYTE_TIMEOUT: Effect(_B, _DROP, _C, _SETTLE, False, True, mend=True),
    Outcome.GAP_TIMEOUT: Effect(_B, _DROP, _C, _SETTLE, False, True, True),
    Outcome.TOTAL_TIMEOUT: Effect(_S, _IGNORE, _C, _SETTLE, False, True),
    Outcome.INVALID_OUTPUT: Effect(_B, _IGNORE, _N, _SETTLE, True, False, mend=True),
    Outcome.OUTRUN: Effect(_S, _IGNORE, _C, _SETTLE, False, False),
    Outcome.SHUTDOWN: Effect(_S, _IGNORE, _N, _SETTLE, False, False),
}
