"""Into the queue and out of it unserved: who may wait, how long that will take, who is told to come back when."""

from __future__ import annotations

from tidegate.policy import entry
from tidegate.policy.decisions import Reason, Refuse
from tidegate.policy.margin import Margin
from tidegate.policy.patience import Patience, client_limit, patience
from tidegate.policy.record import Record
from tidegate.policy.request import NEVER
from tidegate.policy.ticket import Ticket
from tidegate.policy.upstream import Upstream


class Waiting:
    """Owned by ``Path``; the tickets themselves stand in each upstream's queue."""

    __slots__ = ("_last_ticket", "margin")

    def __init__(self, margin: Margin) -> None:
        self.margin = margin
        self._last_ticket = 0

    def enter(self, record: Record, upstream: Upstream, now: float, ticket_id: int = 0) -> Ticket | Refuse:
        """A place in the queue, or why there is none: it is full, or the wait is known to be too long. ``ticket_id``:
        the number under which it has stood in another queue."""
        request, queue = record.request, upstream.queue
        full = queue.has_room(request, record.service_class)
        if full is not None:
            return Refuse(full, self.drain_s(record, upstream, now))
        prompt_tokens, giants = request.prompt_tokens, upstream.giants
        hold_s = giants.hold_s if upstream.is_giant(prompt_tokens) else 0.0
        held = self.patience(record, upstream, hold_s)
        line, rate = queue.lines[record.service_class], upstream.tokens_per_s(record.service_class, now)
        before = line.tokens_before(request.tenant, held.due_at, prompt_tokens)
        record.predicted_wait_s = 0.0 if rate is None else before / rate
        line.usual.add(prompt_tokens)
        has_objective = request.streaming and request.max_wait_s is None
        slo_s = upstream.classes[record.service_class].ttft_slo_s if has_objective else None
        longest_s = held.expires_at - now
        if slo_s is None and not held.is_clients:
            longest_s *= self.margin.config.class_share
        elif slo_s is not None and prompt_tokens > line.usual.value:
            longest_s = self._shorter_s(min(longest_s, self.margin.value * slo_s), line.usual.value / prompt_tokens)
        if record.predicted_wait_s >= longest_s:
            return self._too_late(record, upstream, held, now)
        if not ticket_id:
            self._last_ticket += 1
            ticket_id = self._last_ticket
        ticket = Ticket(ticket_id, request, record.service_class, held.due_at, held.expires_at, now)
        if hold_s:
            ticket.held_until = now + min(hold_s, giants.hold_share * (held.expires_at - now))
        record.queued_at = record.queued_at or now
        queue.enter(ticket, now)
        if upstream.relief is not None:
            upstream.relief.note(ticket)
        upstream.moved = True
        return ticket

    def _shorter_s(self, wait_s: float, shortness: float) -> float:
        """How long a predicted wait may be for a prompt so much longer than usual, where the wait is bounded by an
        objective: for then not everybody can meet it. A giant, which has none, gives way like any other."""
        return wait_s * float(shortness**self.margin.config.length_power)

    def patience(self, record: Record, upstream: Upstream, hold_s: float = 0.0) -> Patience:
        request = record.request
        service_s = upstream.service_s(request.prompt_tokens, upstream.reserved_output(request))
        return patience(record, upstream.classes[record.service_class], self.margin.value, service_s, hold_s)

    def comes_in_time(self, record: Record, upstream: Upstream, now: float, hold_s: float = 0.0) -> bool:
        """Deadline, again: with what is known by now, the answer would come soon enough for the client."""
        if min(client_limit(record.request), record.objective_at) == NEVER:
            return True
        return now <= self.patience(record, upstream, hold_s).expires_at

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
        request, wait_s = record.request, 1.0
        if rate is not None:
            before = line.tokens_before(request.tenant, NEVER, request.prompt_tokens)
            wait_s = line.book(before / rate, request.prompt_tokens / rate, now)
        return entry.jittered(wait_s, request.draw)
