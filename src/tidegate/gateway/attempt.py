"""One attempt: the connection to one replica under one permit, from its placement to its end.

Its exchange decides what the end means: another attempt, an answer, an error. Every callback of a pool, of a
connection and of the clock comes here first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from tidegate.gateway.call import Call
from tidegate.gateway.engine_connection import Asker, EngineConnection
from tidegate.gateway.gathering import WHOLE_HEAD, Gathering
from tidegate.gateway.judgement import outcome_of, overdue
from tidegate.gateway.relay import Relay, is_json
from tidegate.gateway.reply import Reply
from tidegate.gateway.shared import Shared
from tidegate.policy.decisions import Admit
from tidegate.policy.outcomes import Outcome
from tidegate.policy.permit import Permit
from tidegate.policy.request import NEVER, Request
from tidegate.wire.responses import ResponseReader
from tidegate.wire.sse import COMPLETION_TOKENS, PROMPT_TOKENS, usage_count


class Owner(Protocol):
    """The exchange, as its attempts see it."""

    @property
    def call(self) -> Call: ...

    @property
    def request(self) -> Request: ...

    @property
    def reply(self) -> Reply: ...

    @property
    def is_paused(self) -> bool:
        """The client does not keep up."""

    @property
    def is_raced(self) -> bool:
        """Two attempts run, and nothing has come of either."""

    def win(self, attempt: Attempt) -> None:
        """Of two attempts, this one answers first."""

    def relay_for(self, attempt: Attempt, reader: ResponseReader) -> Relay:
        """What carries the answer that has begun."""

    def finish_whole(self, attempt: Attempt, status: int, head: bytes, body: bytes, now: float) -> None:
        """A whole answer is here, and nothing of it is sent yet."""

    def attempt_done(self, attempt: Attempt, outcome: Outcome, now: float) -> None:
        """The answer was passed on to its end."""

    def attempt_failed(
        self,
        attempt: Attempt,
        outcome: Outcome,
        detail: str,
        body: bytes | None = None,
        *,
        still_running: bool = False,
    ) -> None:
        """It came to nothing. ``body``: of the engine's own error."""

    def attempt_ended_by_engine(self, attempt: Attempt) -> None:
        """The engine reported its own failure as an event, which the client has."""


class Attempt:
    """Made with its permit; ``begin`` sets it going."""

    __slots__ = (
        "_dial",
        "_engine",
        "_has_resent",
        "_is_cut_short",
        "_owner",
        "_shared",
        "_written_tokens",
        "admit",
        "has_token",
        "permit",
        "pool",
        "relay",
    )

    def __init__(self, owner: Owner, shared: Shared, admit: Admit) -> None:
        self._owner = owner
        self._shared = shared
        self.admit = admit
        self.permit: Permit | None = admit.permit
        """None once it is settled."""
        self.pool = shared.pools.get(admit.permit.replica)
        self.relay: Relay | None = None
        self.has_token = False
        """The first token has come."""
        self._engine: EngineConnection | None = None
        self._dial = 0
        """Numbers dials, so that a connection which comes too late is known."""
        self._has_resent = False
        self._is_cut_short = False
        """The engine was told to stop in the middle of an answer that was of no use."""
        self._written_tokens = 0

    def begin(self) -> None:
        """Send the request, as soon as there is a connection."""
        pool = self.pool
        if pool is None:
            replica = self.admit.permit.replica
            self._owner.attempt_failed(self, Outcome.CONNECT_FAILED, f"replica {replica} has no address")
            return
        engine = pool.take()
        if engine is not None:
            self._send(engine)
        else:
            self._dial += 1
            pool.connect_for(self, self._dial)

    # ---- the connection ---------------------------------------------------------------------

    def engine_ready(self, engine: EngineConnection, dial: int) -> bool:
        """Part of ``pool.Caller``."""
        if self.permit is None or dial != self._dial:
            return False
        self._send(engine)
        return True

    def engine_unreachable(self, problem: str, dial: int) -> None:
        """Part of ``pool.Caller``."""
        if self.permit is not None and dial == self._dial:
            self._owner.attempt_failed(self, Outcome.CONNECT_FAILED, problem)

    def _send(self, engine: EngineConnection) -> None:
        pool, admit, owner = self.pool, self.admit, self._owner
        if pool is None:
            return
        self._engine = engine
        call, driver = owner.call, self._shared.driver
        is_gathered = pool.gathers and call.may_be_gathered
        asker: Asker = self
        if is_gathered:
            asker = Gathering(self, driver.now, self._shared.outputs.guard(admit.permit.upstream, call, driver.now()))
        left_s = until_deadline_s(owner.request, driver.now)
        engine.send(asker, call.bytes_for(pool, admit.alteration, admit.permit.service_class, left_s))
        if owner.is_paused:
            engine.pause_reading()
        if not self._has_resent:
            driver.sent(admit.permit, driver.now())

    # ---- the answer -------------------------------------------------------------------------

    def answer_read(self, reader: ResponseReader) -> None:
        """Part of ``engine_connection.Asker``."""
        relay, owner = self.relay, self._owner
        if relay is None:
            relay = self.relay = owner.relay_for(self, reader)
        if owner.is_raced and reader.pieces and reader.status < 400:
            owner.win(self)
        if relay.take(reader) and not self.has_token:
            self.has_token = True
            if self.permit is not None:
                self._shared.driver.first_token(self.permit, relay.last_read_at)
        if relay.is_failed:
            owner.attempt_ended_by_engine(self)

    def answer_complete(self, reader: ResponseReader) -> None:
        """Part of ``engine_connection.Asker``."""
        # The connection is free already: nothing that follows may pause or abort it.
        self._engine = None
        now = self._shared.driver.now()
        owner = self._owner
        if self.relay is None and reader.status < 400 and not owner.reply.has_head and is_json(reader.head):
            # Most answers come in one read and need no relay.
            if owner.is_raced:
                owner.win(self)
            owner.finish_whole(self, reader.status, reader.head, b"".join(reader.pieces), now)
            return
        self.answer_read(reader)
        relay = self.relay
        if self.permit is None or relay is None:
            return
        if relay.held is not None:
            self._finish_held(relay, now)
            return
        if relay.ends_early:
            owner.attempt_failed(self, Outcome.CUT, "the engine ended the stream before the answer")
            return
        relay.end()
        owner.attempt_done(self, Outcome.OK if relay.status < 400 else self._outcome(relay.status, b""), now)

    def answer_lost(self, problem: str) -> None:
        """Part of ``engine_connection.Asker``."""
        engine, self._engine = self._engine, None
        relay = self.relay
        if relay is None:
            is_stale = engine is not None and engine.is_reused and not engine.reader.has_begun
            if is_stale and not self._has_resent and self.pool is not None:
                # The engine had closed this idle connection before it saw the request: not its failure.
                self._has_resent = True
                self._dial += 1
                self.pool.connect_for(self, self._dial)
                return
        elif relay.scan is not None and relay.scan.is_done:
            relay.end()
            self._owner.attempt_done(self, Outcome.OK, self._shared.driver.now())
            return
        is_cut = relay is not None and relay.has_forwarded
        self._owner.attempt_failed(self, Outcome.CUT if is_cut else Outcome.ENGINE_ERROR, problem)

    def finish_whole(self, status: int, head: bytes, body: bytes, now: float) -> None:
        """Part of ``gathering.Client``."""
        self._engine = None
        self._owner.finish_whole(self, status, head, body, now)

    def finish_early(self, status: int, body: bytes, written_tokens: int, now: float) -> None:
        """Part of ``gathering.Client``."""
        self._is_cut_short, self._written_tokens = self.abort(), written_tokens
        self._owner.finish_whole(self, status, WHOLE_HEAD, body, now)

    def _finish_held(self, relay: Relay, now: float) -> None:
        body, owner = relay.whole_body(), self._owner
        if relay.status >= 400:
            owner.attempt_failed(self, self._outcome(relay.status, body), "", body)
        elif owner.reply.has_head:
            owner.attempt_failed(self, Outcome.INVALID_OUTPUT, "a stream was asked for and the engine sent none")
        else:
            owner.finish_whole(self, relay.status, relay.head, body, now)

    def _outcome(self, status: int, body: bytes) -> Outcome:
        is_own_key = self.pool is not None and not self.pool.endpoint.is_passthrough
        return outcome_of(status, body, is_own_key=is_own_key)

    # ---- the client and the clock -----------------------------------------------------------

    def pause(self) -> None:
        """The client does not keep up."""
        if self._engine is not None:
            self._engine.pause_reading()

    def resume(self) -> None:
        """The client reads again."""
        if self.relay is not None:
            self.relay.last_read_at = self._shared.driver.now()
        if self._engine is not None:
            self._engine.resume_reading()

    def tick(self, now: float) -> None:
        """Look at the clock."""
        permit = self.permit
        if permit is None:
            return
        self._shared.driver.wrote(permit, self.relay)
        outcome = overdue(permit, self.relay, self.has_token, now)
        # While we do not read, because the client is slow, silence is not the engine's.
        if outcome is not None and not (self._owner.is_paused and outcome is Outcome.GAP_TIMEOUT):
            self._owner.attempt_failed(self, outcome, "", still_running=self.abort())

    # ---- the end ----------------------------------------------------------------------------

    def abort(self) -> bool:
        """Stop it, and tell the engine so. True when an engine had been given the request, and may go on with it for
        a while."""
        self._dial += 1
        engine, self._engine = self._engine, None
        if engine is None:
            return False
        engine.abort()
        return True

    def settle(self, outcome: Outcome, now: float, *, body: bytes | None = None, still_running: bool = False) -> None:
        """Give the permit back; doing so again does nothing. ``body``: the whole answer, for the usage in it."""
        permit, relay, shared, owner = self.permit, self.relay, self._shared, self._owner
        if permit is None:
            return
        self.permit = None
        prompt_tokens = output_tokens = worst_gap_s = None
        if body is not None:
            prompt_tokens, output_tokens = usage_count(body, PROMPT_TOKENS), usage_count(body, COMPLETION_TOKENS)
        if self._is_cut_short:
            output_tokens, still_running = self._written_tokens, True
        if relay is not None and prompt_tokens is None:
            prompt_tokens, output_tokens = relay.counted
            if self.has_token:
                worst_gap_s = relay.worst_gap_s
        asked, kept = owner.call.body, owner.call.continuation
        if prompt_tokens is not None and asked is not None and (kept is None or not kept.count):
            # Of a continued stream's prompt a part was the answer, and that part only we have counted.
            shared.take_usage(owner.request, owner.call.route.path, asked, prompt_tokens)
            if asked.prompts > 1:
                prompt_tokens = round(prompt_tokens / asked.prompts) or 1
        shared.driver.settle(permit, outcome, now, output_tokens, prompt_tokens, worst_gap_s, still_running)
        if still_running:
            shared.poll_soon(permit.replica)


def until_deadline_s(request: Request, now: Callable[[], float]) -> float | None:
    """What is left until nobody waits for the answer any more; None: the client named no end."""
    # Of an answer that does not stream, the first byte comes with the last.
    first_byte_by = NEVER if request.streaming else request.first_byte_by
    ends_at = request.deadline_at if request.deadline_at < first_byte_by else first_byte_by
    return None if ends_at == NEVER else ends_at - now()
