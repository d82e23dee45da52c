"""A place in the queue."""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.policy.request import Request


@dataclass(slots=True)
class Ticket:
    """Given back by a verdict, by ``cancel`` or by expiry."""

    id: int
    request: Request
    service_class: str
    due_at: float
    """Order: first arrival + what the request is held to, so a repeat keeps its place."""
    expires_at: float
    """Refused from here on: it could no longer be answered in time."""
    queued_at: float
    held_until: float = 0.0
    """A giant: until then it goes only to a replica that has little to do."""
    overtaken: int = 0
    """How often a later ticket went first because this one did not fit."""
    gone: bool = False
