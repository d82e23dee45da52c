"""One request's life at the edge: decision, attempt, answer, end.

Everything here runs in callbacks: of the driver (a decision), of a pool (a connection), of the
engine's connection (reads), of the client's connection (it left, it is slow) and of the ticker.
Whatever happens, each permit is settled once and the request is closed once; ``_permit`` and
``is_over`` say what is still owed.
"""

from __future__ import annotations

from typing import Protocol

from tidegate.gateway import error_answer
from tidegate.gateway.call import Call
from tidegate.gateway.engine_connection import EngineConnection
from tidegate.gateway.error_answer import ErrorAnswer
from tidegate.gateway.gathering import Gathering
from tidegate.gateway.judgement import outcome_of, overdue
from tidegate.gateway.pool import Pool
from tidegate.gateway.relay import Relay, is_json, passed_lines
from tidegate.gateway.reply import JSON_LINE, STREAM_LINES, Reply, header_lines
from tidegate.gateway.shared import Shared
from tidegate.lens.edge import Edge
from tidegate.policy.decisions import Admit, Answer, Reason, Refuse, Wait
from tidegate.policy.outcomes import EFFECTS, Outcome
from tidegate.policy.permit import Permit
from tidegate.policy.request import Request
from tidegate.wire.responses import ResponseReader, header_pairs
from tidegate.wire.sse import COMPLETION_TOKENS, HEARTBEAT, PROMPT_TOKENS, error_event, usage_count

MOST_KEPT_BYTES = 64 * 1024
"""Of an answer that may be served again."""


class Client(Protocol):
    """The connection that asked."""

    def exchange_over(self, keeps_alive: bool, now: float) -> None:
        """The answer is sent; the next request can begin."""


class Exchange:
    """Made when a call has become a request; ``start`` sets it going."""

    __slots__ = (
        "_admit",
        "_beat_at",
        "_call",
        "_client",
        "_code",
        "_dial",
        "_engine",
        "_has_resent",
        "_has_token",
        "_has_waited",
        "_is_paused",
        "_may_repeat",
        "_permit",
        "_pool",
        "_relay",
        "_reply",
        "_request",
        "_shared",
        "is_over",
        "ticket",
    )

    def __init__(self, shared: Shared, client: Client, call: Call, request: Request, reply: Reply) -> None:
        self._shared = shared
        self._client: Client | None = client
        self._call = call
        self._request = request
        self._reply = reply
        self.ticket: int | None = None
        self._admit: Admit | None = None
        self._permit: Permit | None = None
        """The attempt that is not settled yet."""
        self._pool: Pool | None = None
        self._dial = 0
        """Numbers dials, so that a connection which comes too late is known."""
        self._engine: EngineConnection | None = None
        self._relay: Relay | None = None
        self._has_waited = False
        self._has_token = False
        self._has_resent = False
        self._may_repeat = True
        self._is_paused = False
        self._beat_at = request.arrived_at
        self._code = ""
        self.is_over = False

    def start(self) -> None:
        """Ask for a decision."""
        self._shared.live.add(self)
        self._shared.driver.offer(self._request, self)

    # ---- decisions --------------------------------------------------------------------------

    def on_wait(self, wait: Wait) -> None:
        self.ticket = wait.ticket
        self._has_waited = True

    def on_decision(self, decision: Admit | Answer | Refuse) -> None:
        self.ticket = self._relay = None
        if isinstance(decision, Admit):
            self._admit = decision
            permit = self._permit = decision.permit
            pool = self._pool = self._shared.pools.get(permit.replica)
            engine = None if pool is None else pool.take()
            if pool is None:
                self._fail(Outcome.CONNECT_FAILED, f"replica {permit.replica} has no address")
            elif engine is not None:
                self._send(engine, pool, decision)
            else:
                self._dial += 1
                pool.connect_for(self, self._dial)
        elif isinstance(decision, Refuse):
            self._tell(error_answer.refused(decision))
            self._close(self._shared.driver.now())
        else:
            self._serve(decision)

    def _serve(self, answer: Answer) -> None:
        headers = error_answer.stored_headers(answer)
        self._reply.whole(200, JSON_LINE + header_lines(headers) + self._own_lines(), answer.body)
        self._close(self._shared.driver.now())

    # ---- the attempt ------------------------------------------------------------------------

    def engine_ready(self, engine: EngineConnection, dial: int) -> bool:
        pool, admit = self._pool, self._admit
        if self._permit is None or dial != self._dial or pool is None or admit is None:
            return False
        self._send(engine, pool, admit)
        return True

    def engine_unreachable(self, problem: str, dial: int) -> None:
        if self._permit is not None and dial == self._dial:
            self._fail(Outcome.CONNECT_FAILED, problem)

    def _send(self, engine: EngineConnection, pool: Pool, admit: Admit) -> None:
        self._engine = engine
        is_gathered = pool.gathers and self._call.may_be_gathered
        asker = Gathering(self, self._shared.driver.now) if is_gathered else self
        engine.send(asker, self._call.bytes_for(pool, admit.alteration, admit.permit.service_class))
        if self._is_paused:
            engine.pause_reading()
        if not self._has_resent:
            driver = self._shared.driver
            driver.sent(admit.permit, driver.now())

    def answer_read(self, reader: ResponseReader) -> None:
        relay = self._relay
        if relay is None:
            relay = self._relay = Relay(self._reply, reader, self._own_lines(), self._shared.driver.now)
        if relay.take(reader) and not self._has_token:
            self._has_token = True
            if self._permit is not None:
                self._shared.driver.first_token(self._permit, relay.last_read_at)
        if relay.is_failed:
            self._end_with_engines_error()

    def answer_complete(self, reader: ResponseReader) -> None:
        # The connection is free already: nothing that follows may pause or abort it.
        self._engine = None
        now = self._shared.driver.now()
        if self._relay is None and reader.status < 400 and not self._reply.has_head and is_json(reader.head):
            # Most answers come in one read and need no relay.
            self.finish_whole(reader.status, reader.head, b"".join(reader.pieces), now)
            return
        self.answer_read(reader)
        relay = self._relay
        if self.is_over or relay is None:
            return
        if relay.held is not None:
            self._finish_held(relay, now)
            return
        relay.end()
        self._settle(Outcome.OK if relay.status < 400 else outcome_of(relay.status, b"", is_own_key=True), now)
        self._close(now)

    def answer_lost(self, problem: str) -> None:
        engine, self._engine = self._engine, None
        relay = self._relay
        if relay is None:
            is_stale = engine is not None and engine.is_reused and not engine.reader.has_begun
            if is_stale and not self._has_resent and self._pool is not None:
                # The engine had closed this idle connection before it saw the request: not its failure.
                self._has_resent = True
                self._dial += 1
                self._pool.connect_for(self, self._dial)
                return
        elif relay.scan is not None and relay.scan.is_done:
            now = self._shared.driver.now()
            relay.end()
            self._settle(Outcome.OK, now)
            self._close(now)
            return
        self._fail(Outcome.CUT if relay is not None and relay.has_forwarded else Outcome.ENGINE_ERROR, problem)

    def _finish_held(self, relay: Relay, now: float) -> None:
        body = relay.whole_body()
        if relay.status >= 400:
            is_own_key = self._pool is not None and not self._pool.endpoint.is_passthrough
            self._fail(outcome_of(relay.status, body, is_own_key=is_own_key), "", body)
        elif self._reply.has_head:
            self._fail(Outcome.INVALID_OUTPUT, "a stream was asked for and the engine sent none")
        else:
            self.finish_whole(relay.status, relay.head, body, now)

    def finish_whole(self, status: int, head: bytes, body: bytes, now: float) -> None:
        """Send an answer that is complete. Part of ``gathering.Client``."""
        self._engine = None
        self._reply.whole(status, passed_lines(head) + self._own_lines(), body)
        self._settle(Outcome.OK, now, usage_count(body, PROMPT_TOKENS), usage_count(body, COMPLETION_TOKENS))
        key = self._request.cache_key
        if key is not None and len(body) <= MOST_KEPT_BYTES:
            self._shared.driver.remember(key, body, now)
        self._close(now)

    def _end_with_engines_error(self) -> None:
        """The client has the engine's own error event; a [DONE] after it would hide the failure."""
        self._abort_engine()
        now = self._shared.driver.now()
        outcome = Outcome.CUT if self._has_token else Outcome.ENGINE_ERROR
        self._code = outcome.value
        self._reply.end()
        self._settle(outcome, now)
        self._close(now)

    # ---- failures ---------------------------------------------------------------------------

    def _fail(self, outcome: Outcome, detail: str, body: bytes | None = None, *, still_running: bool = False) -> None:
        """The attempt is over: try elsewhere, or tell the client. ``body``: of the engine's own error."""
        relay, driver = self._relay, self._shared.driver
        now = driver.now()
        self._settle(outcome, now, still_running=still_running)
        retry_after_s: float | None = None
        if self._may_repeat and EFFECTS[outcome].retry and not (relay is not None and relay.has_forwarded):
            self._may_repeat = self._has_resent = False
            refusal = driver.again(self._request.id, outcome, now, self)
            if refusal is None:
                return
            retry_after_s = refusal.retry_after_s
        if relay is None or body is None:
            self._tell(error_answer.failed(outcome, detail, retry_after_s))
        else:
            self._tell(error_answer.engines_own(outcome, relay.status, header_pairs(relay.head), body, retry_after_s))
        self._close(now)

    def _tell(self, error: ErrorAnswer) -> None:
        """Send an error in whatever form the client can still take it."""
        reply, relay = self._reply, self._relay
        self._code = error.code
        if not reply.has_head:
            reply.whole(error.status, JSON_LINE + header_lines(error.headers) + self._own_lines(), error.body)
        elif relay is None or relay.scan is not None or relay.held is not None:
            # An event that was cut in the middle must be ended, or ours would become part of it.
            is_open = relay is not None and relay.scan is not None and not relay.scan.is_between_events
            reply.end((b"\n\n" if is_open else b"") + error_event(error.body))
        else:
            reply.break_off()

    # ---- the client and the clock -----------------------------------------------------------

    def client_left(self) -> None:
        """The client's connection is gone."""
        if self.is_over:
            return
        self._client = None
        now = self._shared.driver.now()
        if self.ticket is not None:
            self._shared.driver.cancel(self.ticket)
        else:
            self._settle(Outcome.CLIENT_LEFT, now, still_running=self._abort_engine())
        self._close(now)

    def pause(self) -> None:
        """The client does not keep up."""
        self._is_paused = True
        if self._engine is not None:
            self._engine.pause_reading()

    def resume(self) -> None:
        self._is_paused = False
        if self._relay is not None:
            self._relay.last_read_at = self._shared.driver.now()
        if self._engine is not None:
            self._engine.resume_reading()

    def tick(self, now: float) -> None:
        """Look at the clock; called every ``tick_s``."""
        permit = self._permit
        if permit is not None:
            self._shared.driver.wrote(permit, self._relay)
            outcome = overdue(permit, self._relay, self._has_token, now)
            # While we do not read, because the client is slow, silence is not the engine's.
            if outcome is not None and not (self._is_paused and outcome is Outcome.GAP_TIMEOUT):
                self._fail(outcome, "", still_running=self._abort_engine())
                return
        if not self._has_token and self._request.streaming:
            self._beat(now)

    def _beat(self, now: float) -> None:
        """Show a client (and the proxies between) that its stream lives, though it waits."""
        interval_s = self._shared.timers.heartbeat_s
        if not interval_s or now - self._beat_at < interval_s or not self._call.route.is_known:
            return
        relay = self._relay
        if relay is not None and (relay.scan is None or not relay.scan.is_between_events):
            return
        self._beat_at = now
        if self._reply.has_head:
            self._reply.piece(HEARTBEAT)
        else:
            self._reply.open(200, STREAM_LINES + self._own_lines(), None, HEARTBEAT)

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
        if self._permit is not None:
            self._may_repeat = False
            self._fail(Outcome.SHUTDOWN, "", still_running=self._abort_engine())

    # ---- the end ----------------------------------------------------------------------------

    def _abort_engine(self) -> bool:
        """True when an engine had been given the request, and may go on with it for a while."""
        self._dial += 1
        engine, self._engine = self._engine, None
        if engine is None:
            return False
        engine.abort()
        return True

    def _settle(
        self,
        outcome: Outcome,
        now: float,
        prompt_tokens: int | None = None,
        output_tokens: int | None = None,
        still_running: bool = False,
    ) -> None:
        permit, relay, shared, body = self._permit, self._relay, self._shared, self._call.body
        if permit is None:
            return
        self._permit = None
        worst_gap_s = None
        if relay is not None and prompt_tokens is None:
            prompt_tokens, output_tokens = relay.counted
            if self._has_token:
                worst_gap_s = relay.worst_gap_s
        if prompt_tokens is not None and body is not None:
            shared.take_usage(self._request, self._call.route.path, body, prompt_tokens)
            if body.prompts > 1:
                prompt_tokens = round(prompt_tokens / body.prompts) or 1
        shared.driver.settle(permit, outcome, now, output_tokens, prompt_tokens, worst_gap_s, still_running)
        if still_running:
            shared.poll_soon(permit.replica)

    def _own_lines(self) -> bytes:
        """The header lines that are ours on every answer."""
        lines = b"x-request-id: %b\r\n%b" % (self._call.request_id, self._shared.driver.rate_lines(self._request))
        admit, pool = self._admit, self._pool
        if admit is not None and pool is not None:
            lines += pool.replica_header
            if self._has_waited:
                queued_s = admit.permit.admitted_at - self._request.arrived_at
                lines += b"x-tidegate-queue-ms: %d\r\n" % (queued_s * 1000)
            if admit.degraded is not None:
                lines += b"x-tidegate-degraded: %b\r\n" % admit.degraded.encode()
        return lines

    def _close(self, now: float, refused: Reason | None = None) -> None:
        self.is_over = True
        shared, call, reply, relay, client = self._shared, self._call, self._reply, self._relay, self._client
        shared.leave(self)
        # The parts of an exchange refer to each other; without this they would need the collector.
        self._client = self._engine = self._relay = None
        status, code = reply.status, self._code
        gap_s = relay.worst_gap_s if relay is not None and self._has_token else 0.0
        edge = Edge(
            call.request_id.decode("latin-1"), call.route.path, status, code, code != "" and status == 200, gap_s
        )
        record = shared.driver.close(self._request.id, now)
        if refused is not None:
            record.refused, record.outcome = refused, None
        shared.journal.closed(record, edge)
        if client is not None:
            client.exchange_over(reply.keeps_alive, now)
