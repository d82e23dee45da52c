"""The one stateful door: every request's decisions, in the order in which they are taken.

    ENTRY, at arrival:        validity → marks → deadline → quota → queue
    PLACEMENT, when it fits:  deadline again → replica (health, breaker, sequences, slots, limit,
                              queued prefill, slot group) of least cost → commit all in one step

Synchronous, single-writer, not re-entrant. ``settle``, ``cancel`` and the like only change state;
``advance`` decides what that lets happen, and is called after each of them and at ``next_wakeup``.
"""

from __future__ import annotations

from tidegate.policy import closing, entry, snapshot
from tidegate.policy.attempts import Attempts
from tidegate.policy.change import Diff, Drain, LiftMark, SetMark
from tidegate.policy.classes import INTERACTIVE, classify
from tidegate.policy.decisions import Admit, Answer, Decision, Reason, Refuse, Verdict
from tidegate.policy.descent import Descent
from tidegate.policy.dispatch import Dispatch
from tidegate.policy.elsewhere import Elsewhere
from tidegate.policy.hedging import Hedging
from tidegate.policy.ladder import Ladder
from tidegate.policy.margin import Margin
from tidegate.policy.marks import Marks
from tidegate.policy.outcomes import EFFECTS, Outcome
from tidegate.policy.oversight import Oversight
from tidegate.policy.path_config import PathConfig
from tidegate.policy.permit import Permit, Progress
from tidegate.policy.placement import Placement
from tidegate.policy.quota import Quota
from tidegate.policy.reading import Reading
from tidegate.policy.record import Record
from tidegate.policy.reload import drain, reshape
from tidegate.policy.repeats import Repeats
from tidegate.policy.replica import Replica
from tidegate.policy.request import Request
from tidegate.policy.retries import RetryAllowance
from tidegate.policy.sharing import Sharing, share
from tidegate.policy.timeouts import Timeouts
from tidegate.policy.token_source import TokenSource
from tidegate.policy.upstream import Upstream
from tidegate.policy.waiting import Waiting

# A look into an Enum class costs about a microsecond in Python 3.11, and these are needed for every request.
_BEHIND_OTHERS, _HELD = Reason.BEHIND_OTHERS, Reason.HELD
_FIRST_BYTE_TIMEOUT = Outcome.FIRST_BYTE_TIMEOUT
_SENT, _TOKENS, _ABORTED = Progress.SENT, Progress.TOKENS, Progress.ABORTED


class Path:
    """Holds all policy state of one data process."""

    def __init__(self, config: PathConfig, now: float) -> None:
        self.config = PathConfig()
        self.upstreams: dict[str, Upstream] = {}
        self.marks = Marks(config.marks)
        self.oversight = Oversight(self.marks, self.upstreams, config)
        self.quota = Quota(config.quota, config.tenants, config.models)
        self.ladder = Ladder(config.ladder)
        self.timeouts = Timeouts(config.timeouts)
        self.margin = Margin(config.margin)
        self.waiting = Waiting(self.margin)
        self.allowance = RetryAllowance(config.retries, now)
        self.elsewhere = Elsewhere(self.allowance, self.waiting)
        self.descent = Descent(self.ladder, self.marks, self.quota, self.waiting)
        self.repeats = Repeats()
        self.attempts = Attempts(self.timeouts, self.margin, self.marks)
        self.hedging = Hedging(config.retries.hedge)
        self.placement = Placement(self.attempts, self.allowance, self.hedging, config.slots)
        self.dispatch = Dispatch(self.upstreams, self.descent, self.placement, self.waiting)
        self._open = self.dispatch.open
        self._tickets = self.dispatch.tickets
        self._leaving: list[Replica] = []
        self._sharing: Sharing | None = None
        self.apply(config, now)

    # ---- ENTRY ------------------------------------------------------------------------------

    def offer(self, request: Request, now: float) -> Decision:
        """Decide on a new request. Every offer is followed by exactly one ``close``."""
        if request.id in self._open:
            raise ValueError(f"request {request.id} was offered twice")
        upstream = self.upstreams.get(request.upstream)
        record = self._open_record(request, upstream, now)
        if upstream is None:
            return self.dispatch.refuse(
                record, Refuse(Reason.UNKNOWN_MODEL, None, entry.known_models(self.upstreams)), now
            )
        output_tokens = upstream.reserved_output(request)
        refusal = entry.refusal(self.marks, self.quota, request, upstream, output_tokens, now)
        if refusal is not None:
            return self.dispatch.refuse(record, refusal, now)
        entry.charge(self.quota, record, output_tokens, now)
        barred = _BEHIND_OTHERS
        upstream.prompt_tokens.add(request.prompt_tokens)
        if upstream.serves_stored or upstream.slowness is not None:
            decision = self._spare_it(record, upstream, now)
            if decision is not None:
                return decision
        if upstream.is_giant(request.prompt_tokens) and upstream.is_busy():
            barred = _HELD
        elif not upstream.gathers(now) and (upstream.queue.requests == 0 or upstream.queue.lets_pass(now)):
            replica = upstream.choose(request, output_tokens, now)
            if isinstance(replica, Replica):
                return self.placement.place(record, upstream, replica, output_tokens, now)
            barred = replica
        return self.dispatch.stand(record, upstream, barred, now)

    def _spare_it(self, record: Record, upstream: Upstream, now: float) -> Decision | None:
        """An answer without the model that was asked for: it was given before, or that model is slow. None: neither."""
        request = record.request
        if upstream.serves_stored:
            answer = self.ladder.stored(self.ladder.of(record.model), request, now)
            if answer is not None:
                record.is_stored = True
                return answer
        if upstream.diverts(request, now):
            step = self.descent.lighten(record, 0, self.upstreams, now)
            if step is not None:
                return self.dispatch.go(record, step, now)
        return None

    def _open_record(self, request: Request, upstream: Upstream | None, now: float) -> Record:
        request.in_burst = is_burst = upstream is not None and upstream.burst.note(now)
        request.service_class = classify(self.config.classes, request, request.prompt_tokens, is_burst)
        record = Record(request, request.service_class, request.arrived_at, prompt_tokens=request.prompt_tokens)
        record.model = request.upstream
        if request.key is not None and len(self.repeats):
            first = self.repeats.first_arrival(request.tenant, request.key, now)
            if first is not None:
                record.first_arrived_at, record.repeat = first, True
        self._open[request.id] = record
        return record

    # ---- PLACEMENT --------------------------------------------------------------------------

    def advance(self, now: float) -> list[Verdict]:
        """The tickets that are decided now."""
        for name in self.attempts.end_aborts(now):
            self._moved(name)
        verdicts: list[Verdict] = []
        if self._tickets or (self._sharing is not None and self._sharing.is_owed):
            waiting = [*self.upstreams.values()]
            for upstream in waiting if self._sharing is None else self._sharing.turns(self.upstreams, now):
                self.dispatch.serve(upstream, now, verdicts)
        return verdicts

    # ---- the running attempt ----------------------------------------------------------------

    def cancel(self, ticket_id: int, now: float) -> None:
        """The waiting client has left. A ticket that was decided already is none of its business."""
        ticket = self._tickets.pop(ticket_id, None)
        if ticket is None:
            return
        upstream = self.upstreams[ticket.request.upstream]
        upstream.queue.leave(ticket, now)
        upstream.moved = True
        record = self._open[ticket.request.id]
        record.outcome = Outcome.CLIENT_LEFT
        closing.judge_margin(self.margin, record, now)

    def amend(self, ticket_id: int, prompt_tokens: int, source: TokenSource, now: float) -> Refuse | None:
        """``source`` counted the prompt of a request that waits. A refusal, which ends its wait, if it never fits: no
        rung of the ladder can mend that."""
        ticket = self._tickets[ticket_id]
        request, upstream = ticket.request, self.upstreams[ticket.request.upstream]
        upstream.queue.recount(ticket, prompt_tokens)
        request.take_count(prompt_tokens, source)
        record, upstream.moved = self._open[request.id], True
        record.prompt_tokens = prompt_tokens
        if upstream.relief is not None:
            upstream.relief.note(ticket)
        refusal = entry.validity(request, upstream, upstream.reserved_output(request))
        if refusal is not None:
            self.marks.note_over_length(request, now)
            upstream.queue.leave(self._tickets.pop(ticket_id), now)
            record.refused = refusal.reason
        return refusal

    def progress(self, permit: Permit, event: Progress, now: float, tokens: int = 0) -> None:
        """What a driver saw of an attempt. ABORTED may come after ``close``; the rest may not."""
        if event is _ABORTED:
            self.attempts.confirm(permit, now)
            self._moved(permit.upstream)
            return
        record = self._open[permit.request_id]
        if event is _SENT:
            record.sent_at = now
        elif event is _TOKENS:
            record.output_tokens = tokens
            upstream = self.upstreams.get(permit.upstream)
            if upstream is not None:
                self.attempts.grow(permit, record.request, upstream, tokens)
        else:
            self.attempts.first_token(permit, record, now)
            served_by = self._moved(permit.upstream)
            if served_by is not None and served_by.slowness is not None:
                served_by.slowness.note(permit, now - permit.admitted_at, now)

    def again(self, request_id: int, cause: Outcome, now: float, *, written_tokens: int = 0) -> Admit | Answer | Refuse:
        """One more attempt elsewhere after ``cause``. Never waits, so it cannot deadlock. ``written_tokens``: the
        stream that was cut had so many, and goes on there; such a request does not walk the ladder."""
        record = self._open[request_id]
        upstream = self.upstreams.get(record.request.upstream)
        if upstream is None:
            return self.dispatch.refuse_at_once(record, Refuse(Reason.UNKNOWN_MODEL), now)
        self.elsewhere.claim(record, cause, written_tokens)
        found = self.elsewhere.find(record, upstream, now)
        if not isinstance(found, Refuse):
            return self.placement.place(record, upstream, *found, now)
        if written_tokens:
            record.refused = found.reason
            return found
        return self.dispatch.refuse_at_once(record, found, now)

    def instead(self, request_id: int, cause: Outcome, now: float) -> Admit | Answer | Refuse:
        """What the ladder has for a request whose last attempt ended with ``cause``, where ``again`` may not be asked.
        A refusal means: nothing; the client is told of the failure. Never waits."""
        record = self._open[request_id]
        if record.live_permits or record.first_token_at or not EFFECTS[cause].mend:
            raise ValueError(f"nothing can be given instead of request {request_id} after {cause.value}")
        before = record.refused
        decision = self.dispatch.refuse_at_once(record, Refuse(Reason.ATTEMPT_FAILED), now)
        if isinstance(decision, Refuse):
            record.refused = before
        return decision

    def hedge(self, request_id: int, now: float) -> Admit | None:
        """A second attempt beside one whose ``hedge_at`` has come, on another replica. None: not now. The driver
        settles the one that comes second with ``OUTRUN``."""
        record = self._open[request_id]
        request = record.request
        upstream = self.upstreams.get(request.upstream)
        if upstream is None or record.live_permits != 1 or record.first_token_at:
            return None
        if not self.hedging.may(upstream.load()):
            return None
        output_tokens = upstream.reserved_output(request)
        replica = upstream.choose(request, output_tokens, now, record.replica)
        if not isinstance(replica, Replica):
            return None
        self.hedging.spend()
        return self.placement.place(record, upstream, replica, output_tokens, now)

    def settle(
        self,
        permit: Permit,
        outcome: Outcome,
        now: float,
        *,
        output_tokens: int | None = None,
        prompt_tokens: int | None = None,
        worst_gap_s: float | None = None,
        still_running: bool = False,
    ) -> None:
        """End one attempt, once. ``still_running``: it was aborted and the engine has not confirmed.

        Token counts come from the engine's usage where it gave one; ``worst_gap_s`` is the longest
        silence inside the answer.
        """
        record = self._open[permit.request_id]
        if output_tokens is not None:
            record.output_tokens = output_tokens
        if prompt_tokens is not None:
            record.prompt_tokens, record.is_prompt_told = prompt_tokens, True
        upstream = self.upstreams.get(permit.upstream)
        outcome = closing.blame(outcome, record.request, now)
        self.attempts.settle(permit, record, upstream, outcome, now, worst_gap_s, still_running)
        if upstream is not None:
            upstream.moved = True
            if outcome is _FIRST_BYTE_TIMEOUT and upstream.slowness is not None:
                upstream.slowness.note(permit, now - permit.admitted_at, now, timed_out=True)

    def find(self, request_id: int) -> Record:
        """The record of an open request, as filled so far."""
        return self._open[request_id]

    def close(self, request_id: int, now: float) -> Record:
        """End a request, once, after its last attempt. Returns its record."""
        record = self._open[request_id]
        if record.live_permits:
            raise ValueError(f"request {request_id} still has {record.live_permits} live permit(s)")
        del self._open[request_id]
        record.closed_at = now
        request = record.request
        asked = self.upstreams.get(record.model)
        if asked is not None and asked.slowness is not None:
            asked.slowness.forget_probe(request_id)
        if record.charged_tokens is not None:
            used_tokens = closing.used_tokens(record)
            self.quota.close(request.tenant, record.charged_to, record.charged_tokens, used_tokens, now)
        service = self.dispatch.services.pop(request_id, None)
        if service is not None:
            service.correct(record.output_tokens, served=closing.used_tokens(record) > 0)
        if request.key is not None and closing.went_empty(record):
            self.repeats.went_empty(request.tenant, request.key, record.first_arrived_at)
        self.oversight.health.note(record)
        return record

    def remember(self, cache_key: bytes, body: bytes, now: float) -> None:
        """Keep a finished answer for the ladder's cache rung."""
        if self.ladder.keeps_answers:
            self.ladder.answers.remember(cache_key, body, now)

    # ---- the world around -------------------------------------------------------------------

    def observe(self, replica_name: str, reading: Reading, now: float) -> None:
        """Take what an engine reported. Of an unknown replica, or from another clock's future: no use."""
        if reading.at > now:
            return
        for upstream in self.upstreams.values():
            for permit in upstream.observe(replica_name, reading, now):
                self.attempts.confirm(permit, now)
        self.oversight.look(now)

    def apply(self, change: PathConfig | Drain | SetMark | LiftMark, now: float) -> Diff:
        """Take a change into the running state; nothing that runs or waits is dropped."""
        if isinstance(change, Drain):
            return Diff(tuple(drain(self.upstreams, change)))
        if not isinstance(change, PathConfig):
            return Diff(tuple(self.oversight.order(change, now)))
        lines = reshape(self.upstreams, self._leaving, self.config, change, now)
        self._sharing = share(self._sharing, change.groups, self.upstreams, self._leaving, now)
        self.config = change
        self.marks.config, self.allowance.config = change.marks, change.retries
        self.quota.reconfigure(change.quota, change.tenants, change.models)
        self.margin.reconfigure(change.margin)
        self.oversight.reconfigure(change, now)
        hedge = self.hedging.config = change.retries.hedge
        self.timeouts.reconfigure(change.timeouts, hedge.quantile if hedge.enabled else None)
        self.ladder.reconfigure(change.ladder, change.models.ladders)
        self.placement.slots = change.slots
        for record in self._open.values():
            if record.service_class not in change.classes.classes:
                record.service_class = record.request.service_class = INTERACTIVE
        return Diff(tuple(lines))

    def _moved(self, upstream: str) -> Upstream | None:
        known = self.upstreams.get(upstream)
        if known is not None:
            known.moved = True
        return known

    def next_wakeup(self) -> float | None:
        """When ``advance`` may decide something though nothing happened."""
        wakeup = self.attempts.next_wakeup()
        if self._tickets:
            for upstream in self.upstreams.values():
                at = upstream.next_wakeup()
                if at is not None and (wakeup is None or at < wakeup):
                    wakeup = at
        return wakeup

    def view(self, now: float) -> dict[str, object]:
        """The state in figures, for gauges, ``explain`` and tests."""
        return {
            "open_requests": len(self._open),
            "waiting": len(self._tickets),
            **self.attempts.view(now),
            "retry_allowance": self.allowance.left,
            "hedges": self.hedging.made,
            **self.oversight.view(now),
            "cache": self.ladder.answers.view(),
            **snapshot.view(self.upstreams, now),
            "quota": self.quota.view(),
            **({} if self._sharing is None else self._sharing.view()),
        }

    def dump(self, now: float) -> dict[str, object]:
        """What is worth keeping over a restart."""
        return snapshot.dump(self.upstreams, self.marks, self.margin, now)

    def restore(self, state: dict[str, object], now: float) -> None:
        """Take what ``dump`` gave, perhaps on another clock. Raises ValueError for anything else."""
        snapshot.restore(state, self.upstreams, self.marks, self.margin, now)
