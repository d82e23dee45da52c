"""Decides those who wait: who goes, who is refused, who is given to another model. PLACEMENT, as ``Path`` has it.

Holds the open requests and their tickets. Every refusal walks the ladder here, of a request that has just arrived and
of one that has waited.
"""

from __future__ import annotations

from tidegate.policy.decisions import Admit, Answer, Decision, Reason, Refuse, Verdict, Wait
from tidegate.policy.descent import Descent, Step
from tidegate.policy.line import Charge
from tidegate.policy.placement import Placement
from tidegate.policy.record import Record
from tidegate.policy.relief import Relief
from tidegate.policy.replica import Replica
from tidegate.policy.ticket import Ticket
from tidegate.policy.upstream import Upstream
from tidegate.policy.waiting import Waiting

# A look into an Enum class costs about a microsecond in Python 3.11, and these are needed for every request.
_BEHIND_OTHERS, _CLASS_SHARE, _PREFILL = Reason.BEHIND_OTHERS, Reason.CLASS_SHARE, Reason.PREFILL


class Dispatch:
    """Owned by ``Path``."""

    __slots__ = ("descent", "open", "placement", "services", "tickets", "upstreams", "waiting")

    def __init__(
        self, upstreams: dict[str, Upstream], descent: Descent, placement: Placement, waiting: Waiting
    ) -> None:
        self.upstreams = upstreams
        self.descent = descent
        self.placement = placement
        self.waiting = waiting
        self.open: dict[int, Record] = {}
        """Requests that are not closed, by id."""
        self.tickets: dict[int, Ticket] = {}
        """Of those that wait, by ticket id."""
        self.services: dict[int, Charge] = {}
        """What those who waited are taken to cost their tenants, by request id."""

    def serve(self, upstream: Upstream, now: float, verdicts: list[Verdict]) -> None:
        """Decide what can be decided in the queue of one upstream."""
        wakeup = upstream.next_wakeup()
        if wakeup is not None and wakeup <= now:
            upstream.wake(now)
            for ticket in upstream.queue.expired(now):
                self._answer(ticket, upstream, now, verdicts)
                upstream.moved = True
        if upstream.moved and upstream.queue.requests and not upstream.pacing.is_gathering(now):
            while self._serve_next(upstream, now, verdicts):
                pass
            if upstream.relief is not None:
                self._relieve(upstream, upstream.relief, now, verdicts)
        upstream.moved = False

    def stand(self, record: Record, upstream: Upstream, barred: Reason, now: float) -> Decision:
        """Wait in the queue, for ``barred`` bars the way; or why not."""
        record.waited_for = barred
        ticket = self.waiting.enter(record, upstream, now)
        if isinstance(ticket, Refuse):
            return self.refuse(record, ticket, now)
        self.tickets[ticket.id] = ticket
        return Wait(ticket.id, barred)

    def _serve_next(self, upstream: Upstream, now: float, verdicts: list[Verdict]) -> bool:
        """Decide one ticket: the first head that fits somewhere. False: none does."""
        heads = upstream.heads(now)
        for index, ticket in enumerate(heads):
            record = self.open[ticket.request.id]
            output_tokens = upstream.reserved_output(ticket.request)
            replica = upstream.choose(ticket.request, output_tokens, now)
            if not upstream.replicas or (isinstance(replica, Replica) and self._comes_late(ticket, upstream, now)):
                upstream.queue.leave(ticket, now)
                self._answer(ticket, upstream, now, verdicts)
                return True
            if isinstance(replica, Replica):
                self.services[record.request.id] = upstream.dispatch(ticket, output_tokens, now)
                del self.tickets[ticket.id]
                admit = self.placement.place(record, upstream, replica, output_tokens, now)
                verdicts.append(Verdict(ticket.id, record.request.id, admit))
                for passed in heads[:index]:
                    passed.overtaken += 1
                return True
            if record.waited_for is _BEHIND_OTHERS:
                record.waited_for = replica
            if replica is _PREFILL:
                # It will fit as soon as the engine has read on; whoever passes it would take what it waits for.
                return False
            if replica is _CLASS_SHARE:
                # Its own class is in its way: whoever passes it meanwhile takes nothing from it.
                stood_alone, ticket.overtaken = ticket.overtaken >= upstream.queue.config.max_overtakes, 0
                if stood_alone:
                    return True
        return False

    def _comes_late(self, ticket: Ticket, upstream: Upstream, now: float) -> bool:
        hold_s = upstream.giants.hold_s if ticket.held_until else 0.0
        return not self.waiting.comes_in_time(self.open[ticket.request.id], upstream, now, hold_s)

    def _relieve(self, upstream: Upstream, relief: Relief, now: float, verdicts: list[Verdict]) -> None:
        """The longest prompts go to the lighter model, until the wait of the others is short again."""
        while (ticket := self.descent.next_to_lighten(upstream, self.upstreams, now)) is not None:
            record = self.open[ticket.request.id]
            step = self.descent.lighten(record, ticket.id, self.upstreams, now)
            if step is None:
                relief.pass_over()
                continue
            upstream.queue.leave(ticket, now)
            del self.tickets[ticket.id]
            self._pronounce(ticket, record, self.go(record, step, now), verdicts)

    def _answer(self, ticket: Ticket, upstream: Upstream, now: float, verdicts: list[Verdict]) -> None:
        """The end of a ticket that is out of the queue and was not admitted."""
        del self.tickets[ticket.id]
        record = self.open[ticket.request.id]
        refusal = self.waiting.too_late(record, upstream, now)
        self._pronounce(ticket, record, self.refuse(record, refusal, now, ticket.id), verdicts)

    def _pronounce(self, ticket: Ticket, record: Record, decision: Decision, verdicts: list[Verdict]) -> None:
        """Whoever goes on waiting in another queue, under the same ticket, has no verdict yet."""
        if not isinstance(decision, Wait):
            verdicts.append(Verdict(ticket.id, record.request.id, decision))

    # ---- refusals ---------------------------------------------------------------------------

    def refuse(
        self, record: Record, refusal: Refuse, now: float, ticket_id: int = 0, *, may_wait: bool = True
    ) -> Decision:
        """Every refusal walks the ladder first. ``ticket_id``: under which the request has waited."""
        record.refused, record.retry_after_s = refusal.reason, refusal.retry_after_s or 0.0
        found = self.descent.descend(record, refusal, self.upstreams, now, ticket_id=ticket_id, may_wait=may_wait)
        if isinstance(found, Step):
            return self.go(record, found, now)
        if isinstance(found, Refuse):
            record.degraded = None
        return found

    def refuse_at_once(self, record: Record, refusal: Refuse, now: float) -> Admit | Answer | Refuse:
        """As ``refuse``, for a request that may not wait any more."""
        decision = self.refuse(record, refusal, now, may_wait=False)
        return refusal if isinstance(decision, Wait) else decision

    def go(self, record: Record, step: Step, now: float) -> Admit | Wait:
        """Where a rung leads."""
        if isinstance(step.place, Ticket):
            self.tickets[step.place.id] = step.place
            return Wait(step.place.id, _BEHIND_OTHERS)
        return self.placement.place(record, step.upstream, step.place, step.output_tokens, now)
