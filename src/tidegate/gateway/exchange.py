"""One request's life at the edge: decision, attempt, answer, end.

Everything here runs in callbacks: of the driver (a decision), of an attempt (its answer, its end), of the
client's connection (it left, it is slow) and of the ticker. Whatever happens, each permit is settled once and the
request is closed once; an attempt's ``permit`` and ``is_over`` say what is still owed.
"""

from __future__ import annotations

from tidegate.gateway import error_answer
from tidegate.gateway.attempt import Attempt
from tidegate.gateway.call import Call
from tidegate.gateway.continuation import Continuation, continuation_for
from tidegate.gateway.edge_of import edge_of
from tidegate.gateway.error_answer import ErrorAnswer
from tidegate.gateway.own_lines import attempt_lines
from tidegate.gateway.relay import Relay, passed_lines
from tidegate.gateway.reply import JSON_LINE, Reply, header_lines
from tidegate.gateway.running import Client
from tidegate.gateway.shared import Shared
from tidegate.gateway.watching import Watch, action_on, outcome_on, whole_finding
from tidegate.policy.decisions import Admit, Answer, Reason, Refuse, Wait
from tidegate.policy.outcomes import EFFECTS, Outcome
from tidegate.policy.output.output_config import OutputConfig
from tidegate.policy.output.problem import Action, Finding
from tidegate.policy.request import NEVER, Request
from tidegate.wire.header_names import OUTPUT
from tidegate.wire.responses import ResponseReader
from tidegate.wire.sse import DONE_EVENT

_OK = Outcome.OK
MOST_KEPT_BYTES = 64 * 1024
"""Of an answer that may be served again."""


class Exchange:
    """Made when a call has become a request; ``start`` sets it going."""

    __slots__ = (
        "_attempt",
        "_attempts",
        "_beat_at",
        "_client",
        "_code",
        "_finding",
        "_has_waited",
        "_may_repeat",
        "_rival",
        "_shared",
        "_watch",
        "call",
        "is_over",
        "is_paused",
        "reply",
        "request",
        "ticket",
    )

    def __init__(self, shared: Shared, client: Client, call: Call, request: Request, reply: Reply) -> None:
        self._shared = shared
        self._client: Client | None = client
        self.call = call
        self.request = request
        self.reply = reply
        self.ticket: int | None = None
        self._attempt: Attempt | None = None
        """The latest; it may be over."""
        self._rival: Attempt | None = None
        """Runs beside it, and the first of the two to answer wins."""
        self._attempts = 0
        self._has_waited = False
        self._may_repeat = True
        self.is_paused = False
        self._beat_at = request.arrived_at
        self._code = ""
        self._watch: Watch | None = None
        self._finding: Finding | None = None
        """What is wrong with the answer that the client gets."""
        self.is_over = False

    def start(self) -> None:
        """Ask for a decision."""
        self._shared.live.add(self)
        self._shared.driver.offer(self.request, self)

    # ---- decisions --------------------------------------------------------------------------

    def on_wait(self, wait: Wait) -> None:
        self.ticket = wait.ticket
        self._has_waited = True

    def on_decision(self, decision: Admit | Answer | Refuse) -> None:
        self.ticket = None
        if isinstance(decision, Admit):
            if self._shared.continued and self._attempt is None and self.request.streaming:
                # Have it kept as it goes out, if it may go on elsewhere.
                terms = self._shared.continued.get(self.request.upstream)
                self.call.continuation = continuation_for(terms, self.call.body, self.call.route)
            self._attempts += 1
            attempt = self._attempt = Attempt(self, self._shared, decision)
            attempt.begin()
            return
        self._attempt = None
        if isinstance(decision, Refuse):
            self._tell(error_answer.refused(decision))
            self._close(self._shared.driver.now())
        else:
            self._serve(decision)

    def _serve(self, answer: Answer) -> None:
        headers = error_answer.stored_headers(answer)
        self.reply.whole(200, JSON_LINE + header_lines(headers) + self._own_lines(None), answer.body)
        self._close(self._shared.driver.now())

    # ---- a second attempt beside the first --------------------------------------------------

    def _hedge(self, attempt: Attempt, now: float) -> None:
        attempt.admit.permit.hedge_at = NEVER
        # A stream that is kept to go on elsewhere is kept once.
        admit = None if self.call.continuation is not None else self._shared.driver.hedge(self.request.id, now)
        if admit is not None:
            self._attempts += 1
            rival = self._rival = Attempt(self, self._shared, admit)
            rival.begin()

    @property
    def is_raced(self) -> bool:
        """Part of ``attempt.Owner``."""
        return self._rival is not None

    def win(self, attempt: Attempt) -> None:
        """Part of ``attempt.Owner``."""
        loser, relay = self._part(attempt), attempt.relay
        self._attempt = attempt
        watch = None if relay is None else relay.watch
        self._watch = watch if isinstance(watch, Watch) else None
        if loser is not None:
            loser.settle(Outcome.OUTRUN, self._shared.driver.now(), still_running=loser.abort())

    def _part(self, attempt: Attempt) -> Attempt | None:
        """The other one of two; from here on there is one."""
        other = self._rival if attempt is self._attempt else self._attempt
        self._rival = None
        return other

    # ---- what an attempt comes to -----------------------------------------------------------

    def relay_for(self, attempt: Attempt, reader: ResponseReader) -> Relay:
        """Part of ``attempt.Owner``."""
        kept = self.call.continuation
        relay = Relay(self.reply, reader, self._own_lines(attempt), self._shared.driver.now, kept)
        if relay.scan is not None:
            permit = attempt.admit.permit
            if kept is not None:
                kept.begin(permit.replica, relay)
            if self._watch is not None and kept is not None:
                self._watch.resume()
            else:
                self._watch = self._shared.outputs.watch(permit.upstream, self.call, relay.last_read_at)
            relay.watch = self._watch
        return relay

    def finish_whole(self, attempt: Attempt, status: int, head: bytes, body: bytes, now: float) -> None:
        """Part of ``attempt.Owner``."""
        expected = self._shared.outputs.expected(attempt.admit.permit.upstream, self.call) if status == 200 else None
        finding = None if expected is None else whole_finding(expected, body)
        if expected is not None and finding is not None:
            self._finish_faulty(attempt, head, body, finding, expected.config)
            return
        self.reply.whole(status, passed_lines(head) + self._own_lines(attempt), body)
        attempt.settle(Outcome.OK, now, body=body)
        # A lesser answer kept here would be given later as what it is not.
        key = None if attempt.admit.degraded or self.call.altered else self.request.cache_key
        if key is not None and len(body) <= MOST_KEPT_BYTES:
            self._shared.driver.remember(key, body, now)
        self._close(now)

    def _finish_faulty(
        self, attempt: Attempt, head: bytes, body: bytes, finding: Finding, config: OutputConfig
    ) -> None:
        """A whole answer that is not as it should be: ask again, say so instead, or give it with a label."""
        shared, action = self._shared, action_on(finding, config)
        now = shared.driver.now()
        shared.journal.metrics.observe_output(attempt.admit.permit.replica, finding.problem.value)
        if action is not Action.MARK:
            attempt.settle(Outcome.INVALID_OUTPUT, now, body=body)
            if action is not Action.STOP and self._may_repeat:
                self._may_repeat = False
                if shared.driver.again(self.request.id, Outcome.INVALID_OUTPUT, now, self) is None:
                    return
            if action is Action.DEGRADE and self._is_mended(attempt, Outcome.INVALID_OUTPUT, now):
                return
        self._finding = finding
        if action in (Action.MARK, Action.RETRY_ONCE):
            label = b"%b: %b\r\n" % (OUTPUT, finding.problem.value.encode())
            self.reply.whole(200, passed_lines(head) + self._own_lines(attempt) + label, body)
            attempt.settle(outcome_on(finding, config), now, body=body)
        else:
            self._tell(error_answer.bad_output(finding))
        self._close(now)

    def attempt_done(self, attempt: Attempt, outcome: Outcome, now: float) -> None:
        """Part of ``attempt.Owner``."""
        watch = self._watch
        if outcome is _OK and watch is not None and watch.finding is not None:
            outcome = watch.outcome
            self._code = watch.code
        attempt.settle(outcome, now)
        self._close(now)

    def attempt_ended_by_engine(self, attempt: Attempt) -> None:
        """Part of ``attempt.Owner``. A [DONE] after the engine's own error event would hide the failure."""
        still_running, watch, now = attempt.abort(), self._watch, self._shared.driver.now()
        if watch is not None and watch.finding is not None and watch.is_stopped:
            # What the engine writes is of no use.
            attempt.settle(Outcome.INVALID_OUTPUT, now, still_running=still_running)
            self._tell(error_answer.bad_output(watch.finding))
            self._close(now)
            return
        outcome = Outcome.CUT if attempt.has_token else Outcome.ENGINE_ERROR
        kept, relay = self.call.continuation, attempt.relay
        if kept is not None and not kept.is_clients_fault and self._goes_on(kept, attempt, outcome, now):
            return
        attempt.settle(outcome, now)
        self._code = outcome.value
        if relay is not None:
            relay.end_with(b"" if kept is None else kept.engines_error)
        self._close(now)

    def attempt_failed(
        self,
        attempt: Attempt,
        outcome: Outcome,
        detail: str,
        body: bytes | None = None,
        *,
        still_running: bool = False,
    ) -> None:
        """Part of ``attempt.Owner``: leave it to the other of two, try elsewhere, or tell the client."""
        relay, driver = attempt.relay, self._shared.driver
        now = driver.now()
        if self._rival is not None:
            attempt.settle(outcome, now, still_running=still_running)
            self._attempt = self._part(attempt)
            return
        kept = self.call.continuation
        if kept is not None:
            if self._goes_on(kept, attempt, outcome, now, still_running=still_running):
                return
            detail = kept.added_to(detail)
        attempt.settle(outcome, now, still_running=still_running)
        retry_after_s = None
        if self._may_repeat and EFFECTS[outcome].retry and not (relay is not None and relay.has_forwarded):
            self._may_repeat = False
            refusal = driver.again(self.request.id, outcome, now, self)
            if refusal is None:
                return
            retry_after_s = refusal.retry_after_s
        if self._is_mended(attempt, outcome, now):
            return
        self._tell(error_answer.of_attempt(outcome, detail, relay, body, retry_after_s))
        self._close(now)

    def _is_mended(self, attempt: Attempt, outcome: Outcome, now: float) -> bool:
        """The ladder has something instead of a failed attempt of which the client has seen nothing."""
        relay, kept = attempt.relay, self.call.continuation
        has_seen = (relay is not None and relay.has_forwarded) or (kept is not None and kept.count > 0)
        if has_seen or not EFFECTS[outcome].mend:
            return False
        return self._shared.driver.instead(self.request.id, outcome, now, self)

    def _goes_on(
        self, kept: Continuation, attempt: Attempt, outcome: Outcome, now: float, *, still_running: bool = False
    ) -> bool:
        """A stream whose attempt ends with ``outcome`` is complete all the same, or goes on elsewhere. False: it is
        not settled, unless that was tried."""
        relay = attempt.relay
        if not kept.takes(outcome, has_forwarded=relay is not None and relay.has_forwarded):
            return False
        if relay is not None and relay.has_forwarded and kept.is_complete:
            relay.end_with(DONE_EVENT)
            self.attempt_done(attempt, Outcome.OK, now)
            return True
        if not kept.may_go_on(attempt.admit.alteration):
            return False
        attempt.settle(outcome, now, still_running=still_running)
        self._may_repeat = False
        refusal = self._shared.driver.again(self.request.id, outcome, now, self, kept.go_on_after(relay))
        if refusal is not None:
            kept.why_not = f"no other replica takes it: {refusal.reason.value}"
        return refusal is None

    def _tell(self, error: ErrorAnswer) -> None:
        """Send an error in whatever form the client can still take it."""
        self._code = error.code
        error_answer.tell(error, self.reply, self._relay, self._own_lines(self._attempt))

    @property
    def _relay(self) -> Relay | None:
        return None if self._attempt is None else self._attempt.relay

    # ---- the client and the clock -----------------------------------------------------------

    def client_left(self) -> None:
        """The client's connection is gone."""
        if self.is_over:
            return
        self._client = None
        now = self._shared.driver.now()
        if self.ticket is not None:
            self._shared.driver.cancel(self.ticket)
        for attempt in (self._rival, self._attempt):
            if attempt is not None:
                attempt.settle(Outcome.CLIENT_LEFT, now, still_running=attempt.abort())
        self._close(now)

    def pause(self) -> None:
        """The client does not keep up."""
        self.is_paused = True
        if self._attempt is not None:
            self._attempt.pause()

    def resume(self) -> None:
        """The client reads again."""
        self.is_paused = False
        if self._attempt is not None:
            self._attempt.resume()

    def tick(self, now: float) -> None:
        """Look at the clock; called every ``tick_s``."""
        attempt = self._attempt
        if attempt is not None:
            attempt.tick(now)
            if self._rival is not None:
                self._rival.tick(now)
            if self.is_over or attempt.has_token:
                return
            if now >= attempt.admit.permit.hedge_at:
                self._hedge(attempt, now)
        if self.request.streaming:
            self._beat(now)

    def _beat(self, now: float) -> None:
        """Show a client (and the proxies between) that its stream lives, though it waits."""
        interval_s = self._shared.timers.heartbeat_s
        if not interval_s or now - self._beat_at < interval_s or not self.call.route.is_known:
            return
        relay = self._relay
        if relay is None or (relay.scan is not None and relay.scan.is_between_events):
            self._beat_at = now
            self.reply.beat(b"" if self.reply.has_head else self._own_lines(self._attempt))

    def refuse_waiting(self) -> None:
        """The process drains: what stands in the queue is refused now."""
        if self.ticket is None:
            return
        self._shared.driver.cancel(self.ticket)
        self.ticket = None
        self._tell(error_answer.shutting_down())
        self._close(self._shared.driver.now(), Reason.SHUTTING_DOWN)

    def stop(self) -> None:
        """The process ends: what still runs is cut, and says so."""
        self.refuse_waiting()
        if self._rival is not None:
            self.win(self._rival)
        attempt = self._attempt
        if attempt is not None and attempt.permit is not None:
            self._may_repeat = False
            self.attempt_failed(attempt, Outcome.SHUTDOWN, "", still_running=attempt.abort())

    # ---- the end ----------------------------------------------------------------------------

    def _own_lines(self, attempt: Attempt | None) -> bytes:
        """The header lines that are ours on every answer; ``attempt``: whose answer it is."""
        request = self.request
        lines = b"x-request-id: %b\r\n%b" % (self.call.request_id, self._shared.driver.rate_lines(request))
        if attempt is not None:
            lines += attempt_lines(attempt, request.arrived_at, self._attempts, self.call.altered, self._has_waited)
        return lines

    def _close(self, now: float, refused: Reason | None = None) -> None:
        self.is_over = True
        shared, call, reply, attempt, client = self._shared, self.call, self.reply, self._attempt, self._client
        shared.leave(self)
        # The parts of an exchange refer to each other; without this they would need the collector.
        self._client = self._attempt = None
        watch, finding = self._watch, self._finding
        if watch is not None and watch.finding is not None and attempt is not None:
            finding = watch.finding
            shared.journal.metrics.observe_output(attempt.admit.permit.replica, finding.problem.value)
        edge = edge_of(call, reply.status, self._code, attempt, "" if finding is None else finding.problem.value)
        record = shared.driver.close(self.request.id, now)
        if refused is not None:
            record.refused, record.outcome = refused, None
        if call.altered and record.degraded is None and record.attempts:
            record.degraded = call.altered
        shared.journal.closed(record, edge)
        if client is not None:
            client.exchange_over(reply.keeps_alive, now)
