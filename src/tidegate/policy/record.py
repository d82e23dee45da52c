"""One row per request: what happened, when, and why."""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.policy.decisions import Alteration, Reason
from tidegate.policy.outcomes import Outcome
from tidegate.policy.request import NEVER, Request


@dataclass(slots=True)
class Record:
    """Filled while the request lives, handed out by ``Path.close``. Times on the driver's clock;
    0.0 for a moment that never came."""

    request: Request
    service_class: str
    first_arrived_at: float
    """Earlier than ``request.arrived_at`` when the client came back under the same key."""
    queued_at: float = 0.0
    admitted_at: float = 0.0
    sent_at: float = 0.0
    first_token_at: float = 0.0
    closed_at: float = 0.0
    attempts: int = 0
    replica: str | None = None
    outcome: Outcome | None = None
    """Of the last attempt; None when none was made."""
    refused: Reason | None = None
    waited_for: Reason | None = None
    """The first gate that kept it waiting."""
    degraded: str | None = None
    """The rung of the ladder that it got its answer from, or is to get it from."""
    prompt_tokens: int = 0
    output_tokens: int = 0
    reserved_slots: int = 0
    predicted_wait_s: float = 0.0
    retry_after_s: float = 0.0
    repeat: bool = False
    """The client had come before under the same key and got nothing."""
    objective_at: float = NEVER
    """By when its class wants the first byte of one that had to wait."""
    charged_tokens: int | None = None
    """By the tenant's quota at arrival; None: it never came so far."""
    live_permits: int = 0
    """Attempts that are not settled; 0 in a closed record."""
    is_prompt_told: bool = False
    """``prompt_tokens`` is what the engine reported, and no longer an estimate or a count of ours."""
    is_retried: bool = False
    """Its one retry was asked for."""
    continuations: int = 0
    """How often its stream was to go on elsewhere."""
    cached_tokens: int = 0
    """Of the prompt, what the replica was expected to hold already."""
    model: str = ""
    """Public name that the client asked for. ``request.upstream`` is who serves it: another one after the ladder."""
    rungs: tuple[str, ...] = ()
    """Those of the ladder that were tried."""
    alteration: Alteration | None = None
    """What the ladder changes in the request, for every attempt from there on."""
    is_stored: bool = False
    """Answered from the cache before any engine was asked: no lesser answer, by the configuration's word."""
    charged_to: str = ""
    """The upstream whose rates were charged too."""
