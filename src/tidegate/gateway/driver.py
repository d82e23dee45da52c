"""The only code that calls ``Path``: it brings the loop's time in and carries verdicts out.

Exchanges call down (``offer``, ``settle`` …); ``Path`` answers are handed back by callback, always
before control returns to the loop. A callback may call down again: that marks work, and the round
that is running takes it up.
"""

from __future__ import annotations

import asyncio
from typing import Protocol

from tidegate.gateway.door import Door
from tidegate.gateway.rate_headers import rate_lines
from tidegate.gateway.relay import Relay
from tidegate.policy.change import Diff, Drain, LiftMark, SetMark
from tidegate.policy.classes import classify
from tidegate.policy.decisions import Admit, Answer, Decision, Refuse, Wait
from tidegate.policy.notices import Notice
from tidegate.policy.outcomes import Outcome
from tidegate.policy.path_config import PathConfig
from tidegate.policy.permit import Permit, Progress
from tidegate.policy.reading import Reading
from tidegate.policy.record import Record
from tidegate.policy.request import ESTIMATE_SLACK, NEVER, Request
from tidegate.policy.token_source import TokenSource

# A look into an Enum class costs about a microsecond in Python 3.11, and this is needed for every request.
_SENT = Progress.SENT

CLOCK_SKEW_S = 0.1
"""uvloop's clock stands still within one turn of the loop, so a reading may seem to be this far ahead."""


class Applicant(Protocol):
    """Who asked for a decision."""

    def on_wait(self, wait: Wait) -> None:
        """The request stands in the queue; ``on_decision`` follows unless it is cancelled."""

    def on_decision(self, decision: Admit | Answer | Refuse) -> None:
        """The decision; once for every offer."""


class Driver:
    """Drives one ``Path`` by the event loop, with one timer. Not thread-safe."""

    def __init__(self, path: Door, loop: asyncio.AbstractEventLoop) -> None:
        self._path = path
        self._loop = loop
        self.now = loop.time
        """Seconds on the loop's clock, the only clock ``Path`` knows."""
        self._waiting: dict[int, Applicant] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._wakes_at = NEVER
        self._read_at: dict[str, float] = {}
        """By replica: when a stream of it was last read, since the last patrol."""
        self._is_advancing = False
        self._is_due = False

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def offer(self, request: Request, applicant: Applicant) -> None:
        """Ask for a decision on what has just arrived; it comes by callback, at once or later."""
        self._tell(self._path.offer(request, request.arrived_at), applicant)

    def offer_counted(self, request: Request, applicant: Applicant) -> None:
        """As ``offer``, for a request whose prompt was counted first, which took time."""
        self._tell(self._path.offer(request, self.now()), applicant)

    def _tell(self, decision: Decision, applicant: Applicant) -> None:
        if isinstance(decision, Wait):
            self._waiting[decision.ticket] = applicant
            applicant.on_wait(decision)
            self._advance()
        else:
            applicant.on_decision(decision)

    def hinges_on_count(self, request: Request, *, is_cheap: bool) -> bool:
        """An exact prompt count may decide whether the request can ever fit or, where it ``is_cheap``, its class."""
        upstream = self._path.upstreams.get(request.upstream)
        if upstream is None or request.prompt_exact:
            return False
        if upstream.hinges_on_count(request, upstream.reserved_output(request)):
            return True
        if not is_cheap:
            return False
        classes, tokens, is_burst = self._path.config.classes, request.prompt_tokens, upstream.burst.is_on
        least, most = int(tokens / ESTIMATE_SLACK), int(tokens * ESTIMATE_SLACK)
        return classify(classes, request, least, is_burst) != classify(classes, request, most, is_burst)

    def context_tokens(self, upstream: str) -> int | None:
        """The longest context that a replica of ``upstream`` has; None: not every one has told."""
        found = self._path.upstreams.get(upstream)
        return None if found is None else found.context_tokens

    def amend(self, request: Request, ticket: int, tokens: int, source: TokenSource) -> None:
        """The prompt of a request that had to wait was counted; if it waits no more, this only goes on record."""
        applicant = self._waiting.get(ticket)
        if applicant is None:
            request.counted_tokens, request.counted_by = tokens, source
            return
        decision = self._path.amend(ticket, tokens, source, self.now())
        if decision is not None:
            del self._waiting[ticket]
            applicant.on_decision(decision)
        self._advance()

    def forgo(self, request: Request) -> Record:
        """The record of a request whose client left before it was offered: ``Path`` never hears of it."""
        service_class = classify(self._path.config.classes, request, request.prompt_tokens, is_burst=False)
        record = Record(request, service_class, request.arrived_at, prompt_tokens=request.prompt_tokens)
        record.outcome, record.closed_at = Outcome.CLIENT_LEFT, self.now()
        return record

    def cancel(self, ticket: int) -> None:
        """The waiting client left; ``close`` follows."""
        del self._waiting[ticket]
        self._path.cancel(ticket, self.now())

    def sent(self, permit: Permit, now: float) -> None:
        """The request went out to the engine."""
        self._path.progress(permit, _SENT, now)

    def first_token(self, permit: Permit, now: float) -> None:
        """The first event of a stream came back."""
        self._path.progress(permit, Progress.FIRST_TOKEN, now)
        if self._waiting:
            self._advance()

    def wrote(self, permit: Permit, relay: Relay | None) -> None:
        """Look at how much of a stream has come: what outgrows its reservation is told."""
        if relay is not None and relay.last_read_at > self._read_at.get(permit.replica, 0.0):
            self._read_at[permit.replica] = relay.last_read_at
        if relay is not None and relay.scan is not None and permit.is_outgrown_by(relay.scan.events):
            self._path.progress(permit, Progress.TOKENS, self.now(), relay.scan.events)

    def settle(
        self,
        permit: Permit,
        outcome: Outcome,
        now: float,
        output_tokens: int | None,
        prompt_tokens: int | None,
        worst_gap_s: float | None,
        still_running: bool,
    ) -> None:
        """End one attempt. ``again`` or ``close`` follows in the same turn of the loop."""
        self._path.settle(
            permit,
            outcome,
            now,
            output_tokens=output_tokens,
            prompt_tokens=prompt_tokens,
            worst_gap_s=worst_gap_s,
            still_running=still_running,
        )
        if still_running:
            # The abort's grace has begun to run.
            self._set_timer()

    def again(
        self, request_id: int, cause: Outcome, now: float, applicant: Applicant, written_tokens: int = 0
    ) -> Refuse | None:
        """Ask for one more attempt on another replica, after ``settle``; ``written_tokens``: of a stream that is to
        go on there.

        It comes by callback, at once; a refusal is returned instead, since the client is told of the failure.
        """
        decision = self._path.again(request_id, cause, now, written_tokens=written_tokens)
        if isinstance(decision, Refuse):
            return decision
        applicant.on_decision(decision)
        # Others get what the first attempt held: no ``close`` follows it that would see to that.
        if self._waiting:
            self._advance()
        return None

    def hedge(self, request_id: int, now: float) -> Admit | None:
        """Ask for a second attempt beside one that is late."""
        return self._path.hedge(request_id, now)

    def instead(self, request_id: int, cause: Outcome, now: float, applicant: Applicant) -> bool:
        """Ask the ladder, after ``settle``, for what can be given instead of a failed attempt. It comes by callback,
        at once; False: there is nothing, and the client is told of the failure."""
        decision = self._path.instead(request_id, cause, now)
        if isinstance(decision, Refuse):
            return False
        applicant.on_decision(decision)
        if self._waiting:
            self._advance()
        return True

    def remember(self, cache_key: bytes, body: bytes, now: float) -> None:
        """A finished answer that may be served again."""
        self._path.remember(cache_key, body, now)

    def close(self, request_id: int, now: float) -> Record:
        """End the request; what it frees is handed on before this returns."""
        record = self._path.close(request_id, now)
        # Without a ticket there is no verdict to give, which is the common case.
        if self._waiting:
            self._advance()
        return record

    def observe(self, replica: str, reading: Reading) -> None:
        """An engine reported."""
        now = self.now()
        if now < reading.at < now + CLOCK_SKEW_S:
            now = reading.at
        self._path.observe(replica, reading, now)
        self._advance()

    def apply(self, change: PathConfig | Drain | SetMark | LiftMark) -> Diff:
        """A reload, or an operator's order."""
        diff = self._path.apply(change, self.now())
        self._advance()
        return diff

    def rate_lines(self, request: Request) -> bytes:
        """Headers with what is left of its tenant's rates; none where it has none."""
        limits = self._path.quota.rate_limits(request.tenant, self.now())
        return b"" if limits is None else rate_lines(limits)

    def health(self, model: str) -> dict[str, object] | None:
        """How a model is doing; None: there is none of this name."""
        return self._path.oversight.health.report(model, self.now())

    def healths(self) -> list[dict[str, object]]:
        """How every model is doing."""
        return self._path.oversight.health.reports(self.now())

    def marks(self) -> list[dict[str, object]]:
        """Every mark, with the key as it is."""
        return self._path.oversight.marks.dump(self.now())

    def patrol(self) -> list[Notice]:
        """Look at the replicas; call about once a second. Returns what there is to log since the last time."""
        oversight = self._path.oversight
        oversight.note_streams(self._read_at)
        self._read_at.clear()
        notices = oversight.patrol(self.now())
        # Who was taken back may have room.
        self._advance()
        return notices

    def view(self) -> dict[str, object]:
        return self._path.view(self.now())

    def dump(self) -> dict[str, object]:
        """What the policies have learned."""
        return self._path.dump(self.now())

    def stop(self) -> None:
        """No timer after this."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _advance(self) -> None:
        """Hand out what can be decided now, until nothing more can."""
        if self._is_advancing:
            self._is_due = True
            return
        self._is_advancing = True
        try:
            self._is_due = True
            while self._is_due:
                self._is_due = False
                for verdict in self._path.advance(self.now()):
                    self._waiting.pop(verdict.ticket).on_decision(verdict.decision)
        finally:
            self._is_advancing = False
        self._set_timer()

    def _set_timer(self) -> None:
        wakes_at = self._path.next_wakeup()
        # A timer that fires too early only asks again; moving it for every request would cost more.
        if wakes_at is None or wakes_at >= self._wakes_at:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._wakes_at = wakes_at
        self._timer = self._loop.call_at(wakes_at, self._wake)

    def _wake(self) -> None:
        self._timer = None
        self._wakes_at = NEVER
        self._advance()
