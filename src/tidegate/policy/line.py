"""The waiting requests of one class on one upstream, earliest deadline first."""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heapify, heappop, heappush

from tidegate.policy.estimates import DrainMeter
from tidegate.policy.request import Request

MOST_BOOKED_S = 60.0
"""Appointments are given this far ahead; a flood of refused requests must not outlast itself."""


@dataclass(slots=True)
class Ticket:
    """A place in the queue, given back by a verdict, by ``cancel`` or by expiry."""

    id: int
    request: Request
    service_class: str
    due_at: float
    """Order: first arrival + what the request is held to, so a repeat keeps its place."""
    expires_at: float
    """Refused from here on: it could no longer be answered in time."""
    queued_at: float
    overtaken: int = 0
    """How often a later ticket went first because this one did not fit."""
    gone: bool = False


class Line:
    """A heap with lazy deletion; totals are exact at every moment."""

    __slots__ = ("_booked_until", "_heap", "_latest_due", "bytes", "meter", "requests", "tokens", "weight", "work")

    def __init__(self, weight: float) -> None:
        self.weight = weight
        self.work = 0.0
        """Dispatched prompt tokens ÷ weight: the class with the least goes next."""
        self.requests = 0
        self.tokens = 0
        self.bytes = 0
        self.meter = DrainMeter()
        self._booked_until = 0.0
        self._latest_due = 0.0
        self._heap: list[tuple[float, int, Ticket]] = []

    def enter(self, ticket: Ticket, now: float) -> None:
        if self.requests == 0:
            self.meter.begin(now)
            self._latest_due = ticket.due_at
        self._latest_due = max(self._latest_due, ticket.due_at)
        heappush(self._heap, (ticket.due_at, ticket.id, ticket))
        self.requests += 1
        self.tokens += ticket.request.prompt_tokens
        self.bytes += ticket.request.body_bytes

    def head(self) -> Ticket | None:
        heap = self._heap
        while heap and heap[0][2].gone:
            heappop(heap)
        return heap[0][2] if heap else None

    def leave(self, ticket: Ticket, now: float) -> None:
        """Take a ticket out, wherever it stands."""
        ticket.gone = True
        self.requests -= 1
        self.tokens -= ticket.request.prompt_tokens
        self.bytes -= ticket.request.body_bytes
        if self.requests == 0:
            self.meter.end(now)
        # Dead entries stay in the heap until they surface; without this, cancelled tickets that
        # never surface would grow it without bound.
        if len(self._heap) > 64 and len(self._heap) > 2 * self.requests:
            self._heap = [entry for entry in self._heap if not entry[2].gone]
            heapify(self._heap)

    def dispatched(self, ticket: Ticket, now: float) -> None:
        tokens = max(1, ticket.request.prompt_tokens)
        self.meter.served(tokens, now)
        self.work += tokens / self.weight
        self.leave(ticket, now)

    def tokens_before(self, due_at: float) -> int:
        """Prompt tokens that go first. At once for whoever stands at the end, which is the rule while
        clients are alike; an exact scan for one who is due before others."""
        if due_at >= self._latest_due:
            return self.tokens
        return sum(t.request.prompt_tokens for due, _, t in self._heap if due <= due_at and not t.gone)

    def book(self, wait_s: float, service_s: float, now: float) -> float:
        """When a refused client should come back, in seconds from now: behind those who wait, and
        behind those who were sent away before it. Without the second part, everybody refused in one
        burst comes back at the same moment and is refused again."""
        start = max(now + wait_s, self._booked_until)
        self._booked_until = min(start + service_s, now + MOST_BOOKED_S)
        return start - now

    def tickets(self) -> list[Ticket]:
        return [entry[2] for entry in sorted(self._heap, key=lambda e: e[:2]) if not entry[2].gone]
