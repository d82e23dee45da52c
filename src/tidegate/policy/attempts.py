"""The running attempts: every permit from its placement to its end, and what its end teaches."""

from __future__ import annotations

from heapq import heappop, heappush
from math import ceil

from tidegate.policy import closing
from tidegate.policy.breaker import State
from tidegate.policy.margin import Margin
from tidegate.policy.marks import Marks
from tidegate.policy.outcomes import EFFECTS, LimitSignal, Outcome, Verdict
from tidegate.policy.permit import Permit, PermitState
from tidegate.policy.record import Record
from tidegate.policy.replica import Replica
from tidegate.policy.request import NEVER, Request
from tidegate.policy.timeouts import Phase, Timeouts, timing_key
from tidegate.policy.upstream import Upstream

SLOW_SHARE = 0.5
"""A call is slow for the breaker when its first byte took more than this part of the timeout that
was learned for it. The client's own limit does not count: that it is short is no sign of the replica (R4)."""

PUSHBACK_S = 1.0
"""A replica that said it is full is passed over for so long, as if marked; a lone one is not."""

PACE_SHARE = 0.75
"""Of the objective: an answer slower than this counts as slow, for what is read ahead shows only seconds later."""
FEW_TOKENS = 8
"""A shorter answer says little about its pace."""

# A look into an Enum class costs about a microsecond in Python 3.11, and these are needed for every request.
_CLOSED = State.CLOSED
_OK, _BAD, _DROP, _SAMPLE = Outcome.OK, Verdict.BAD, LimitSignal.DROP, LimitSignal.SAMPLE
_CONNECT_FAILED, _PUSHBACK, _OUTRUN = Outcome.CONNECT_FAILED, Outcome.PUSHBACK, Outcome.OUTRUN
_RESERVED, _USED = PermitState.RESERVED, PermitState.USED
_ABORTING, _SETTLED = PermitState.ABORTING, PermitState.SETTLED


class Attempts:
    __slots__ = ("_aborts", "_holders", "_last_id", "abort_unconfirmed", "margin", "marks", "timeouts")

    def __init__(self, timeouts: Timeouts, margin: Margin, marks: Marks) -> None:
        self.timeouts = timeouts
        self.margin = margin
        self.marks = marks
        self.abort_unconfirmed = 0
        """Aborts whose slots came back by the clock, not by the engine's word."""
        self._last_id = 0
        self._holders: dict[int, Replica] = {}
        self._aborts: list[tuple[float, int, Permit]] = []

    def begin(self, record: Record, replica: Replica, output_tokens: int, now: float) -> Permit:
        """Place a request on ``replica``: commits slots, limit, probe and prefill together."""
        permit = self._permit(record, replica, output_tokens, now)
        replica.take(permit)
        self._holders[permit.id] = replica
        record.attempts += 1
        record.live_permits += 1
        record.replica, record.admitted_at, record.reserved_slots = replica.name, now, permit.slots
        return permit

    def _permit(self, record: Record, replica: Replica, output_tokens: int, now: float) -> Permit:
        request = record.request
        key = timing_key(request.upstream, record.service_class, request.prompt_tokens)
        allowed = self.timeouts.allowed(key, now)
        deadline_at, total_by = request.deadline_at, now + allowed.total_s
        total_by = deadline_at if deadline_at < total_by else total_by
        # An answer that does not stream has its first byte when it is complete.
        first_byte_by = now + allowed.first_byte_s if request.streaming else total_by
        first_byte_by = request.first_byte_by if request.first_byte_by < first_byte_by else first_byte_by
        self._last_id += 1
        return Permit(
            self._last_id,
            request.id,
            request.upstream,
            replica.name,
            record.service_class,
            replica.slots.needed(request.prompt_tokens, output_tokens, request.sequences),
            request.sequences,
            request.prompt_tokens,
            output_tokens,
            replica.pending_tokens + request.prompt_tokens - record.cached_tokens if request.streaming else 0,
            now,
            total_by if total_by < first_byte_by else first_byte_by,
            SLOW_SHARE * allowed.first_byte_s,
            allowed.gap_s,
            total_by,
            key,
            cached_tokens=record.cached_tokens,
            hedge_at=now + allowed.late_s if request.streaming else NEVER,
        )

    def first_token(self, permit: Permit, record: Record, now: float) -> None:
        if permit.state is not _RESERVED:
            raise ValueError(f"first token for permit {permit.id}, which is {permit.state.value}")
        replica, seconds = self._holders[permit.id], now - permit.admitted_at
        permit.first_token_at = now
        # A continued stream had its first token long ago.
        is_first = record.first_token_at == 0.0
        if is_first:
            # Of two that ran at once, this one answers.
            record.first_token_at, record.replica = now, permit.replica
        if record.request.streaming and replica.may_learn(now):
            predicted_s = replica.first_token.predict_s(permit.pending_tokens)
            replica.limit.record(_SAMPLE, seconds, predicted_s, now)
            replica.learn_first_token(permit, seconds)
            self.timeouts.learn(permit.timing_key, Phase.FIRST_BYTE, seconds, now)
        replica.started(permit)
        if permit.probe:
            self._pass_probe(permit, replica, seconds, now)
        if is_first:
            closing.judge_margin(self.margin, record, now)

    def grow(self, permit: Permit, request: Request, upstream: Upstream, output_tokens: int) -> None:
        """A running answer has so many tokens by now: what outgrew its reservation gets more of it, though
        it may not be there. An engine cannot be stopped from writing; the next admission can."""
        expectation = upstream.expectation
        if permit.state is not _USED or not expectation.config.learns or not permit.is_outgrown_by(output_tokens):
            return
        most = expectation.config.output_tokens(request, upstream.context_tokens)
        written = min(most, -(-output_tokens // request.sequences))
        permit.reserved_tokens = expectation.reserved_tokens(request, most, written)
        replica = self._holders[permit.id]
        needed = replica.slots.needed(permit.prompt_tokens, permit.reserved_tokens, permit.sequences)
        if needed > permit.slots:
            replica.grow(permit, needed - permit.slots)

    def settle(
        self,
        permit: Permit,
        record: Record,
        upstream: Upstream | None,
        outcome: Outcome,
        now: float,
        worst_gap_s: float | None,
        still_running: bool,
    ) -> None:
        """End one attempt, once; ``record`` already holds its token counts."""
        if permit.state is _ABORTING or permit.state is _SETTLED:
            raise ValueError(f"permit {permit.id} was settled twice")
        replica, effect = self._holders[permit.id], EFFECTS[outcome]
        record.outcome = outcome
        record.live_permits -= 1
        streaming = record.request.streaming
        self._judge(permit, record, replica, upstream, outcome, now)
        if outcome is _OK and not record.continuations:
            if replica.may_learn(now):
                self._learn(permit, record, replica, upstream, now, worst_gap_s)
        else:
            closing.teach(self.timeouts, permit, outcome, streaming, now)
        if effect.counts_against_client:
            self.marks.note_timeout(record.request, now)
        elif self.marks.is_counting and outcome is _OK:
            self.marks.note_success(record.request)
        if record.first_token_at == 0.0 and outcome is not _OUTRUN:
            closing.judge_margin(self.margin, record, now)
        replica.let_go(permit, still_running=still_running, now=now)
        if still_running:
            heappush(self._aborts, (permit.abort_by, permit.id, permit))
        else:
            del self._holders[permit.id]

    def _judge(
        self, permit: Permit, record: Record, replica: Replica, upstream: Upstream | None, outcome: Outcome, now: float
    ) -> None:
        """What the ending says about the replica: to its breaker, its limit, its reservations."""
        effect, admitted_at = EFFECTS[outcome], permit.admitted_at
        first_byte_s = (permit.first_token_at or now) - admitted_at
        slow = record.request.streaming and first_byte_s > permit.slow_after_s
        if permit.probe and outcome is _OK and replica.pace is not None:
            # It did not stream, so that only its end can be compared.
            slow = replica.pace.is_slow_whole(permit.prompt_tokens, record.output_tokens, now - admitted_at, now)
        weighed = slow or effect.breaker is _BAD
        may_open = weighed and upstream is not None and upstream.may_open(replica)
        breaker, before = replica.breaker, replica.breaker.generation
        breaker.record(
            permit.generation,
            effect.breaker,
            now,
            slow=slow,
            may_open=may_open,
            probe=permit.probe,
            unreachable=outcome is _CONNECT_FAILED,
        )
        if breaker.generation != before and breaker.state is _CLOSED:
            replica.start_slowly(now)
        if effect.limit is _DROP:
            replica.limit.record(_DROP, 0.0, 0.0, now)
        if outcome is _PUSHBACK:
            # Who refuses has the least to do, and would be chosen for it again and again.
            replica.set_aside(max(replica.marked_until, now + PUSHBACK_S), is_banned=replica.is_banned)

    def _pass_probe(self, permit: Permit, replica: Replica, first_byte_s: float, now: float) -> None:
        """A probe that streams is judged by its first byte: its end may be minutes away."""
        permit.probe = False
        before = replica.breaker.generation
        pace, slow = replica.pace, first_byte_s > permit.slow_after_s
        slow = slow or (pace is not None and pace.is_slow_first(permit.pending_tokens, first_byte_s, now))
        replica.breaker.answered(permit.generation, now, slow=slow)
        if replica.breaker.generation != before and replica.breaker.state is _CLOSED:
            replica.start_slowly(now)

    def _learn(
        self,
        permit: Permit,
        record: Record,
        replica: Replica,
        upstream: Upstream | None,
        now: float,
        worst_gap_s: float | None,
    ) -> None:
        """What an answer that ended well tells of service times and lengths."""
        seconds, output_tokens = now - permit.admitted_at, record.output_tokens
        if not record.request.streaming:
            replica.limit.record(_SAMPLE, seconds, replica.whole.predict_s(output_tokens), now)
        replica.learn_whole(output_tokens, seconds)
        if replica.pace is not None:
            replica.pace.note_whole(permit.prompt_tokens, output_tokens, seconds)
        replica.slots.note_usage(permit.slots, record.prompt_tokens + output_tokens)
        self.timeouts.learn(permit.timing_key, Phase.TOTAL, seconds, now)
        if worst_gap_s is not None:
            self.timeouts.learn(permit.timing_key, Phase.GAP, worst_gap_s, now)
        if upstream is not None:
            request = record.request
            each = output_tokens / request.sequences
            upstream.output_tokens.add(each)
            self._judge_pace(permit, replica, upstream, each, now)
            expectation = upstream.expectation
            if expectation.config.learns:
                most = expectation.config.output_tokens(request, upstream.context_tokens)
                expectation.learn(request, most, ceil(each), permit.expected_tokens)

    def _judge_pace(
        self, permit: Permit, replica: Replica, upstream: Upstream, output_tokens: float, now: float
    ) -> None:
        """Whether a stream was written as fast as its class wants it."""
        of_class = upstream.classes.get(permit.service_class)
        if of_class is None or of_class.tpot_slo_s is None or not permit.first_token_at or output_tokens < FEW_TOKENS:
            return
        token_s = (now - permit.first_token_at) / (output_tokens - 1)
        replica.judge_pace(late=token_s > PACE_SHARE * of_class.tpot_slo_s, now=now)

    def confirm(self, permit: Permit, now: float) -> None:
        """The engine has stopped an aborted attempt; saying so twice is harmless."""
        replica = self._holders.pop(permit.id, None)
        if replica is None:
            return
        if permit.state is not PermitState.ABORTING:
            raise ValueError(f"permit {permit.id} is {permit.state.value}, not aborting")
        replica.confirm(permit, now)

    def end_aborts(self, now: float) -> list[str]:
        """Free what was aborted ``abort_grace_s`` ago and never confirmed. Returns the upstreams."""
        moved = []
        while self._aborts and (self._aborts[0][0] <= now or self._aborts[0][2].state is PermitState.SETTLED):
            permit = heappop(self._aborts)[2]
            if permit.state is PermitState.ABORTING:
                self.abort_unconfirmed += 1
                self.confirm(permit, now)
                moved.append(permit.upstream)
        return moved

    def next_wakeup(self) -> float | None:
        return self._aborts[0][0] if self._aborts else None

    def overdue(self, now: float, grace_s: float = 60.0) -> int:
        """Leaked permits: live long after the driver had to end them. Always 0, or it is a bug."""
        return sum(
            permit.state in (PermitState.RESERVED, PermitState.USED) and now > permit.total_by + grace_s
            for replica in {id(each): each for each in self._holders.values()}.values()
            for permit in replica.permits.values()
        )

    def view(self, now: float) -> dict[str, object]:
        return {
            "permits": len(self._holders),
            "permit_leaks": self.overdue(now),
            "abort_unconfirmed": self.abort_unconfirmed,
            "margin": self.margin.value,
        }
