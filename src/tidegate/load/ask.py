"""One request to be sent."""

from __future__ import annotations

from dataclasses import dataclass, field

CHAT = "/chat/completions"
COMPLETIONS = "/completions"
PATIENCE_S = 120.0


@dataclass(frozen=True, slots=True)
class Refusal:
    """What a request that must not be answered has to get."""

    statuses: frozenset[int] = frozenset({400})
    codes: frozenset[str] = frozenset()
    """The error's ``code``; empty: any. Engines without codes of their own are judged by the status alone."""
    may_answer: bool = False
    """An answer is right as well: it is the engine's to say. What is wrong is a 5xx, another code, or silence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """``body`` is complete but for the model's name: ``{"model":`` and the target's model go before it."""

    index: int
    """In its phase, from 0; equal seeds give equal asks."""
    due_s: float = 0.0
    """When it is to be sent, from the beginning of its phase. Closed loops take no notice of it."""
    label: str
    """What kind of request it is: figures are split by it."""
    body: bytes
    """JSON text that follows the model: ``,"messages":[…],"stream":true}``."""
    path: str = CHAT
    """Below the target's ``/v1``."""
    headers: tuple[tuple[str, str], ...] = ()
    tenant: str = ""
    """For the report; the tenant's key is in ``headers``."""
    session: str = ""
    is_stream: bool = True
    prompt_tokens: int = 0
    """As it was meant; 0: not known."""
    max_tokens: int | None = None
    refusal: Refusal | None = None
    """What it must get in place of an answer; None: an answer."""
    patience_s: float = PATIENCE_S
    """From sending; then the client leaves."""
    keeps_text: bool = False
    """Its answer's text is wanted (output consistency)."""
    wants_json: bool = False
    """Its answer must be JSON, or it counts as abnormal."""
    extra: dict[str, str] = field(default_factory=dict)
    """Columns of the workload's own, for the records."""
