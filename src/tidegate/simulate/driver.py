"""Drives ``Path`` on virtual time: what the gateway does with sockets, done with simulated engines.

Each event of the world (a call, a client that leaves, an engine's word, a timer) becomes calls of
``Path``; its verdicts are applied before the event ends. The driver enforces what a permit says:
first byte, gap and total time. It reads every engine once a second.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tidegate.engines.simulated import EngineEvent, EngineEventKind
from tidegate.policy.change import Diff, Drain
from tidegate.policy.decisions import Admit, Answer, Decision, Refuse, Wait
from tidegate.policy.outcomes import EFFECTS, Outcome
from tidegate.policy.path import Path
from tidegate.policy.path_config import PathConfig
from tidegate.policy.permit import Progress
from tidegate.policy.record import Record
from tidegate.policy.request import NEVER, Request
from tidegate.simulate.clients import Clients
from tidegate.simulate.clock import Clock
from tidegate.simulate.replica import SimulatedReplica
from tidegate.simulate.sent_call import SentCall
from tidegate.simulate.visit import BLOCK_TOKENS, Call, Demand, Ending

READING_PERIOD_S = 1.0
TICK_S = 0.1
"""How often the gateway looks at how much of a stream has come."""


class Driver:
    def __init__(self, path: Path, replicas: list[SimulatedReplica], clients: Clients, clock: Clock) -> None:
        self.path = path
        self.refusals: dict[str, int] = {}
        self._clock = clock
        self._clients = clients
        self._replicas = {replica.name: replica for replica in replicas}
        self._attempts: dict[int, SentCall] = {}
        self._attempt_of: dict[int, SentCall] = {}
        self._waiting: dict[int, Call] = {}
        self._ticket_of: dict[int, int] = {}
        self._wakes_at = NEVER
        for replica in replicas:
            replica.listen(self._hear)

    # What clients do

    def open(self, call: Call) -> None:
        self._apply(call, self.path.offer(request_of(call), self._clock.now))
        self._advance()

    def leave(self, call: Call) -> None:
        now = self._clock.now
        ticket = self._ticket_of.pop(call.id, None)
        if ticket is not None:
            del self._waiting[ticket]
            self.path.cancel(ticket, now)
        else:
            self._give_up(self._attempt_of[call.id], Outcome.CLIENT_LEFT)
        self._close(call)
        self._advance()

    # What watchers see

    def reserved_tokens(self, replica: str) -> int | None:
        for upstream in self.path.upstreams.values():
            for each in upstream.replicas:
                if each.name == replica:
                    return each.slots.held * each.slots.slot_tokens
        return 0

    def groups(self) -> Mapping[str, Mapping[str, Any]]:
        found = self.path.view(self._clock.now).get("groups")
        return found if isinstance(found, Mapping) else {}

    # What operators do

    def apply(self, change: PathConfig | Drain) -> Diff:
        """A reload, or an order to drain."""
        diff = self.path.apply(change, self._clock.now)
        self._advance()
        return diff

    # What Path says

    def _apply(self, call: Call, decision: Decision) -> None:
        match decision:
            case Admit():
                self._send(call, decision)
            case Wait():
                self._waiting[decision.ticket] = call
                self._ticket_of[call.id] = decision.ticket
            case Refuse():
                self.refusals[decision.reason.value] = self.refusals.get(decision.reason.value, 0) + 1
                self._close(call)
                self._clients.refused(call, decision.retry_after_s)
            case Answer():
                self._close(call)
                self._clients.answered(call, 0, degraded=decision.degraded)

    def _advance(self) -> None:
        """Apply verdicts until none is left, then set the alarm for the next one."""
        now = self._clock.now
        while verdicts := self.path.advance(now):
            for verdict in verdicts:
                call = self._waiting.pop(verdict.ticket)
                del self._ticket_of[call.id]
                self._apply(call, verdict.decision)
        wakeup = self.path.next_wakeup()
        if wakeup is not None and wakeup < self._wakes_at:
            if wakeup <= now:
                raise RuntimeError(f"Path names a wakeup at {wakeup} after it was advanced at {now}")
            self._wakes_at = wakeup
            self._clock.schedule(wakeup, self._wake, wakeup)

    def _wake(self, due: float) -> None:
        if due == self._wakes_at:
            self._wakes_at = NEVER
            self._advance()

    def _send(self, call: Call, admit: Admit) -> None:
        permit = admit.permit
        replica = self._replicas[permit.replica]
        attempt = SentCall(call, permit, replica, admit.degraded)
        self._attempts[permit.id] = self._attempt_of[call.id] = attempt
        if not replica.submit(permit.id, call.visit.demand, admit.alteration):
            self._fail(attempt, Outcome.CONNECT_FAILED)
            return
        self.path.progress(permit, Progress.SENT, self._clock.now)
        # In this order: an answer that comes whole has both at one time, and then its total was too long.
        self._clock.schedule(permit.total_by, self._check_total, attempt)
        self._clock.schedule(permit.first_byte_by, self._check_first_byte, attempt)

    # What engines say

    def _hear(self, event: EngineEvent) -> None:
        attempt = self._attempts.get(event.id)
        if attempt is None:
            return
        match event.kind:
            case EngineEventKind.FIRST_TOKEN:
                self._start(attempt)
            case EngineEventKind.FINISHED:
                self._finish(attempt, event)
            case EngineEventKind.TOO_LONG:
                self._settle(attempt, Outcome.CLIENT_FAULT)
                self._close(attempt.call)
                self._clients.refused(attempt.call, None)
            case _:
                self._fail(attempt, Outcome.CUT if attempt.has_token else Outcome.ENGINE_ERROR, event.tokens)
        self._advance()

    def _start(self, attempt: SentCall) -> None:
        now = self._clock.now
        attempt.has_token = True
        self.path.progress(attempt.permit, Progress.FIRST_TOKEN, now)
        self._clients.first_token(attempt.call)
        self._clock.schedule(now + attempt.permit.gap_s, self._check_gap, attempt)
        if self.path.config.slots.learns:
            self._clock.schedule(now + TICK_S, self._check_growth, attempt)

    def _finish(self, attempt: SentCall, event: EngineEvent) -> None:
        self._forget(attempt)
        self.path.settle(
            attempt.permit,
            Outcome.OK,
            self._clock.now,
            output_tokens=event.tokens,
            prompt_tokens=attempt.call.visit.demand.prompt_tokens,
            worst_gap_s=event.worst_gap_s,
        )
        self._close(attempt.call)
        self._clients.answered(attempt.call, event.tokens, degraded=attempt.degraded)

    def _fail(self, attempt: SentCall, outcome: Outcome, tokens: int = 0) -> None:
        """The engine failed: try elsewhere, ask the ladder, else tell the client."""
        self._settle(attempt, outcome, tokens=tokens)
        if not self._is_made_good(attempt, outcome):
            self._close(attempt.call)
            self._clients.failed(attempt.call, Ending.ENGINE)

    def _is_made_good(self, attempt: SentCall, outcome: Outcome) -> bool:
        """Once on another replica, or by the ladder, where the outcome table allows it."""
        call, effect, now = attempt.call, EFFECTS[outcome], self._clock.now
        decision: Admit | Answer | Refuse | None = None
        if effect.retry and not call.was_retried:
            call.was_retried = True
            decision = self.path.again(call.id, outcome, now)
        if (decision is None or isinstance(decision, Refuse)) and effect.mend and not attempt.has_token:
            decision = self.path.instead(call.id, outcome, now)
        if decision is None or isinstance(decision, Refuse):
            return False
        self._apply(call, decision)
        return True

    # What clocks say

    def _check_first_byte(self, attempt: SentCall) -> None:
        if attempt.permit.id in self._attempts and not attempt.has_token:
            self._time_out(attempt, Outcome.FIRST_BYTE_TIMEOUT)

    def _check_total(self, attempt: SentCall) -> None:
        if attempt.permit.id in self._attempts:
            self._time_out(attempt, Outcome.TOTAL_TIMEOUT)

    def _check_gap(self, attempt: SentCall) -> None:
        permit, now = attempt.permit, self._clock.now
        if permit.id not in self._attempts:
            return
        silent_until = attempt.replica.engine.last_token_at(permit.id, now) + permit.gap_s
        if silent_until <= now:
            self._time_out(attempt, Outcome.GAP_TIMEOUT)
        else:
            self._clock.schedule(silent_until, self._check_gap, attempt)

    def _check_growth(self, attempt: SentCall) -> None:
        permit, now = attempt.permit, self._clock.now
        if permit.id not in self._attempts:
            return
        tokens = attempt.replica.engine.tokens(permit.id, now)
        if permit.is_outgrown_by(tokens):
            self.path.progress(permit, Progress.TOKENS, now, tokens)
        if permit.expected_tokens < attempt.call.visit.demand.max_tokens:
            self._clock.schedule(now + TICK_S, self._check_growth, attempt)

    def _time_out(self, attempt: SentCall, outcome: Outcome) -> None:
        self._give_up(attempt, outcome)
        if not self._is_made_good(attempt, outcome):
            self._close(attempt.call)
            self._clients.failed(attempt.call, Ending.TIMEOUT)
        self._advance()

    def read_engines(self) -> None:
        """One look at every engine, and the next in a second while somebody is served or waits."""
        now = self._clock.now
        for name, replica in self._replicas.items():
            self.path.observe(name, replica.reading(), now)
            self._advance()
        if self._clients.live or self.path.next_wakeup() is not None:
            self._clock.schedule(now + READING_PERIOD_S, self.read_engines)

    # Endings

    def _give_up(self, attempt: SentCall, outcome: Outcome) -> None:
        """We stop; the engine hears of it and may take a while."""
        tokens = attempt.replica.engine.tokens(attempt.permit.id, self._clock.now)
        self._settle(attempt, outcome, tokens=tokens, still_running=True)
        attempt.replica.abort(attempt.permit.id)

    def _settle(self, attempt: SentCall, outcome: Outcome, *, tokens: int = 0, still_running: bool = False) -> None:
        self._forget(attempt)
        self.path.settle(attempt.permit, outcome, self._clock.now, output_tokens=tokens, still_running=still_running)

    def _forget(self, attempt: SentCall) -> None:
        del self._attempts[attempt.permit.id]
        del self._attempt_of[attempt.call.id]

    def _close(self, call: Call) -> Record:
        return self.path.close(call.id, self._clock.now)


def request_of(call: Call) -> Request:
    """What a policy may know of a call: not the output length, not the label."""
    demand = call.visit.demand
    return Request(
        id=call.id,
        upstream=demand.model,
        arrived_at=call.at,
        draw=call.draw,
        prompt_tokens=demand.prompt_tokens,
        prompt_exact=True,
        max_tokens=demand.max_tokens,
        tenant=demand.tenant,
        class_hint=demand.class_hint,
        key=f"visit-{demand.index}",
        first_byte_by=call.at + demand.patience_s,
        prefixes=_prefixes(demand),
        deadline_at=NEVER if demand.worthless_after_s is None else demand.at + demand.worthless_after_s,
    )


def _prefixes(demand: Demand) -> tuple[tuple[int, float], ...]:
    """At every doubling, as the gateway takes them, the longest first."""
    blocks, counted, found = demand.blocks, 1, []
    while counted <= len(blocks):
        found.append((blocks[counted - 1], min(1.0, counted * BLOCK_TOKENS / demand.prompt_tokens)))
        counted *= 2
    return tuple(reversed(found))
