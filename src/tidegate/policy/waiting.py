"""Into the queue and out of it unserved: who may wait, how long that will take, who is told to come back when."""

from __future__ import annotations

from tidegate.policy import entry
from tidegate.policy.classes import ClassesConfig
from tidegate.policy.decisions import Reason, Refuse
from tidegate.policy.line import Ticket
from tidegate.policy.margin import Margin
from tidegate.policy.patience import Patience, patience
from tidegate.policy.record import Record
from tidegate.policy.upstream import Upstream


class Waiting:
    """Owned by ``Path``; the tickets themselves stand in each upstream's queue."""

    __slots__ = ("_last_ticket", "classes", "margin")

    def __init__(self, margin: Margin, classes: ClassesConfig) -> None:
        self.margin = margin
        self.classes = classes
        self._last_ticket = 0

    def enter(self, record: Record, upstream: Upstream, now: float) -> Ticket | Refuse:
        """A place in the queue, or why there is none: it is full, or the wait is known to be too long."""
        request, queue = record.request, upstream.queue
        full = queue.has_room(request, record.service_class)
        if full is not None:
            return Refuse(full, self.drain_s(record, upstream, now))
        held = self.patience(record, upstream)
        before = queue.lines[record.service_class].tokens_before(held.due_at)
        rate = upstream.tokens_per_s(record.service_class, now)
        record.predicted_wait_s = 0.0 if rate is None else before / rate
        if now + record.predicted_wait_s >= held.expires_at:
            return self._too_late(record, upstream, held, now)
        self._last_ticket += 1
        ticket = Ticket(self._last_ticket, request, record.service_class, held.due_at, held.expires_at, now)
        record.queued_at = now
        queue.enter(ticket, now)
        upstream.moved = True
        return ticket

    def patience(self, record: Record, upstream: Upstream) -> Patience:
        request = record.request
        service_s = upstream.service_s(request.prompt_tokens, upstream.reserved_output(request))
        return patience(record, self.classes.classes[record.service_class], self.margin.value, service_s)

    def too_late(self, record: Record, upstream: Upstream, now: float) -> Refuse:
        """Why a ticket leaves the queue unserved."""
        return self._too_late(record, upstream, self.patience(record, upstream), now)

    def _too_late(self, record: Record, upstream: Upstream, held: Patience, now: float) -> Refuse:
        reason = Reason.DEADLINE_UNREACHABLE if held.is_clients else Reason.QUEUE_TIMEOUT
        if not any(replica.serves for replica in upstream.replicas):
            reason = Reason.NO_REPLICA
        return Refuse(reason, self.drain_s(record, upstream, now))

    def drain_s(self, record: Record, upstream: Upstream, now: float) -> float:
        """Retry-After: the drain of the queue this client would stand behind, × 0.8–1.2 (R7)."""
        line, rate = upstream.queue.lines[record.service_class], upstream.tokens_per_s(record.service_class, now)
        wait_s = 1.0 if rate is None else line.book(line.tokens / rate, record.request.prompt_tokens / rate, now)
        return entry.jittered(wait_s, record.request.draw)
