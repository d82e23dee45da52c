"""How long a request may stand in the queue, and in which order it stands.

Held to the client's own limits by default: a stream to its first byte, any answer to its deadline.
Of that time ``margin`` may be spent waiting, less what the service itself will take. The class's
``max_wait_s`` bounds all of it, so that the order is by effective deadline = min(deadline, first
arrival + max_wait): nobody without a deadline waits for ever behind those who have one.

A request may bring a longest stay of its own (a job does), which takes the place of its class's and of its objective.

A class may have an objective for its streams' first byte. A stream that would miss it, with the same
margin, is refused rather than answered late; one that finds a place at once is served all the same.
"""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.policy.classes import ClassConfig
from tidegate.policy.record import Record
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
    record: Record, of_class: ClassConfig, margin: float, service_s: tuple[float, float], hold_s: float = 0.0
) -> Patience:
    """``service_s`` is (to the first byte, to the end) after dispatch; 0.0 where unknown. For ``hold_s`` a giant may be
    held beside its class's wait; it has no objective, which is made for prompts that are read in less. Notes in the
    record by when its class wants the first byte of any other."""
    request = record.request
    own_s, arrived = request.max_wait_s, request.arrived_at
    max_wait_s = (of_class.max_wait_s if own_s is None else own_s) + hold_s
    first_s, whole_s = service_s
    expires_at = NEVER
    if of_class.ttft_slo_s is not None and request.streaming and not hold_s and own_s is None:
        record.objective_at = arrived + of_class.ttft_slo_s
        max_wait_s = min(max_wait_s, max(0.0, margin * of_class.ttft_slo_s - first_s))
    if request.first_byte_by < NEVER:
        before_s = first_s if request.streaming else whole_s
        expires_at = arrived + margin * (request.first_byte_by - arrived) - before_s
    if request.deadline_at < NEVER:
        expires_at = min(expires_at, arrived + margin * (request.deadline_at - arrived) - whole_s)
    is_clients = expires_at < arrived + max_wait_s
    held_s = min(client_limit(request) - arrived, max_wait_s)
    return Patience(record.first_arrived_at + held_s, min(expires_at, arrived + max_wait_s), is_clients)
