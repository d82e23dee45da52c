"""How long a request may stand in the queue, and in which order it stands.

Held to the client's own limits by default: a stream to its first byte, any answer to its deadline.
Of that time ``margin`` may be spent waiting, less what the service itself will take. The class's
``max_wait_s`` bounds all of it, so that the order is by effective deadline = min(deadline, first
arrival + max_wait): nobody without a deadline waits for ever behind those who have one.
"""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.policy.request import NEVER, Request


@dataclass(slots=True)
class Patience:
    due_at: float
    """Place in the order."""
    expires_at: float
    """Refuse from here on."""
    is_clients: bool
    """The client's limit binds, not the class's."""


def client_limit(request: Request) -> float:
    """When the client leaves, if nothing better is known: the earlier of its two limits."""
    first_byte_by, deadline_at = request.first_byte_by, request.deadline_at
    return first_byte_by if first_byte_by < deadline_at else deadline_at


def patience(
    request: Request, first_arrived_at: float, max_wait_s: float, margin: float, service_s: tuple[float, float]
) -> Patience:
    """``service_s`` is (to the first byte, to the end) after dispatch; 0.0 where unknown."""
    arrived = request.arrived_at
    first_s, whole_s = service_s
    expires_at = NEVER
    if request.first_byte_by < NEVER:
        before_s = first_s if request.streaming else whole_s
        expires_at = arrived + margin * (request.first_byte_by - arrived) - before_s
    if request.deadline_at < NEVER:
        expires_at = min(expires_at, arrived + margin * (request.deadline_at - arrived) - whole_s)
    is_clients = expires_at < arrived + max_wait_s
    held_s = min(client_limit(request) - arrived, max_wait_s)
    return Patience(first_arrived_at + held_s, min(expires_at, arrived + max_wait_s), is_clients)
