"""The answers ``Path`` gives, and the reasons it gives for them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from tidegate.policy.permit import Permit


class Reason(StrEnum):
    """Why a request waited, moved or was refused. The value is the HTTP error's ``code``."""

    UNKNOWN_MODEL = "model_not_found"
    NEVER_FITS = "context_length_exceeded"
    POOL_TOO_SMALL = "exceeds_kv_pool"
    """Fits the context, but no replica's whole KV pool holds its reservation."""
    MARKED = "marked"
    """A session, user, source or model under a mark, which may get a lesser answer."""
    BLOCKED = "blocked"
    """A session, user, tenant or source that is to get no answer for a while."""
    QUOTA = "quota_exceeded"
    MODEL_RATE = "model_rate_exceeded"
    """The model's own requests or tokens a minute, which all tenants share, are used up."""
    QUEUE_FULL = "queue_full"
    QUEUE_TOKENS = "queue_tokens_full"
    QUEUE_BYTES = "queue_bytes_full"
    DEADLINE_PASSED = "deadline_passed"
    DEADLINE_UNREACHABLE = "deadline_unreachable"
    """The predicted wait is longer than what the client will wait."""
    QUEUE_TIMEOUT = "queue_timeout"
    NO_REPLICA = "no_replica"
    """Nothing healthy serves this model."""
    RETRY_ALLOWANCE = "retry_allowance"
    """A retry was due and the allowance is spent."""
    ATTEMPT_FAILED = "attempt_failed"
    """No other replica may try again; only the ladder can have something instead."""
    SHUTTING_DOWN = "shutting_down"
    # Why a ticket waits; never the reason of a refusal.
    BEHIND_OTHERS = "behind_others"
    SLOTS = "slots"
    SEQUENCES = "sequences"
    LIMIT = "limit"
    PREFILL = "queued_prefill"
    BREAKER = "breaker_open"
    CLASS_SHARE = "class_share"
    """Its class holds as much of the replicas as it may, or the rest is kept for other classes."""
    MODEL_CONCURRENCY = "model_concurrency"
    """Its model runs as many sequences as it may, over all replicas."""
    HELD = "held_back"
    """A giant prompt, which would stall those beside it, waits for a replica that has little to do."""
    GROUP_SHARE = "group_share"
    """Its model's part of a pool that several models share is used up, or is kept for the others."""


@dataclass(slots=True)
class Alteration:
    """What the driver changes in the request before it goes out. None: leave as it is."""

    max_tokens: int | None = None
    """Bound to write, so that the reservation is a worst case or the answer is simpler."""
    drop_tools: bool = False
    """Leave tools and functions out."""
    keep_messages: int | None = None
    """Of the messages, the system's and so many of the last."""


@dataclass(slots=True)
class Admit:
    """Send the request now, under ``permit``."""

    permit: Permit
    alteration: Alteration | None = None
    degraded: str | None = None
    """The ladder rung that produced this, or None."""


@dataclass(slots=True)
class Wait:
    """The request stands in the queue; a ``Verdict`` for ``ticket`` follows."""

    ticket: int
    reason: Reason


@dataclass(slots=True)
class Refuse:
    """No. Final inside; outside the client may come back after ``retry_after_s``."""

    reason: Reason
    retry_after_s: float | None = None
    """None: coming back is useless (never fits, unknown model)."""
    detail: str = ""
    """Figures for the client's message, such as the limit that was passed."""


@dataclass(slots=True)
class Answer:
    """Serve this stored answer instead."""

    body: bytes
    age_s: float
    degraded: str | None = None
    reason: Reason | None = None
    """The refusal that the ladder turned into this answer."""


Decision = Admit | Wait | Refuse | Answer


@dataclass(slots=True)
class Verdict:
    """A ticket's end: what ``advance`` returns, one per ticket that was decided."""

    ticket: int
    request_id: int
    decision: Admit | Refuse | Answer
