"""What stands behind the gateway's driver here: exchanges without bytes, on simulated engines.

Each takes its decisions, retries, gives up and ends in the order in which ``gateway.exchange`` does (the client is
told before the request is closed, for closing it may decide others),
and calls the driver as that does; the engine's word comes as an event instead of a read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from tidegate.engines.simulated import EngineEvent, EngineEventKind
from tidegate.gateway.driver import Driver
from tidegate.gateway.judgement import overdue
from tidegate.policy.decisions import Admit, Answer, Refuse, Wait
from tidegate.policy.outcomes import EFFECTS, Outcome
from tidegate.policy.permit import Permit
from tidegate.simulate.clients import Clients
from tidegate.simulate.clock import Clock
from tidegate.simulate.driver import request_of
from tidegate.simulate.replica import SimulatedReplica
from tidegate.simulate.visit import Call, Ending


@dataclass(slots=True)
class Shared:
    """What all exchanges share."""

    driver: Driver
    clients: Clients
    clock: Clock
    replicas: dict[str, SimulatedReplica]
    refused: Callable[[Refuse], None]
    running: dict[int, Exchange] = field(default_factory=dict)
    """By permit id."""
    live: dict[int, Exchange] = field(default_factory=dict)
    """By call id."""


class Exchange:
    """One call's life; an ``Applicant`` of the driver."""

    def __init__(self, shared: Shared, call: Call) -> None:
        self._shared = shared
        self._call = call
        self._ticket: int | None = None
        self._permit: Permit | None = None
        self._degraded: str | None = None
        self._has_token = False
        self._may_repeat = True

    @property
    def _replica(self) -> SimulatedReplica:
        assert self._permit is not None
        return self._shared.replicas[self._permit.replica]

    def start(self) -> None:
        self._shared.live[self._call.id] = self
        self._shared.driver.offer(request_of(self._call), self)

    # ---- decisions --------------------------------------------------------------------------

    def on_wait(self, wait: Wait) -> None:
        self._ticket = wait.ticket

    def on_decision(self, decision: Admit | Answer | Refuse) -> None:
        self._ticket = None
        if isinstance(decision, Admit):
            self._dispatch(decision)
        elif isinstance(decision, Refuse):
            self._shared.refused(decision)
            self._shared.clients.refused(self._call, decision.retry_after_s)
            self._close()
        else:
            self._shared.clients.answered(self._call, 0, degraded=decision.degraded)
            self._close()

    def _dispatch(self, admit: Admit) -> None:
        permit = self._permit = admit.permit
        self._degraded = admit.degraded
        shared, demand = self._shared, self._call.visit.demand
        shared.running[permit.id] = self
        if not self._replica.submit(permit.id, demand, admit.alteration):
            self._fail(Outcome.CONNECT_FAILED)
            return
        shared.driver.sent(permit, shared.driver.now())
        shared.clock.schedule(permit.first_byte_by, self._look, permit)
        shared.clock.schedule(permit.total_by, self._look, permit)

    # ---- the engine -------------------------------------------------------------------------

    def hear(self, event: EngineEvent) -> None:
        match event.kind:
            case EngineEventKind.FIRST_TOKEN:
                self._first_token()
            case EngineEventKind.FINISHED:
                self._finish(event)
            case EngineEventKind.TOO_LONG:
                self._settle(Outcome.CLIENT_FAULT)
                self._shared.clients.refused(self._call, None)
                self._close()
            case _:
                self._fail(Outcome.CUT if self._has_token else Outcome.ENGINE_ERROR, event.tokens)

    def _first_token(self) -> None:
        shared, permit = self._shared, self._permit
        assert permit is not None
        self._has_token = True
        now = shared.driver.now()
        shared.driver.first_token(permit, now)
        shared.clients.first_token(self._call)
        shared.clock.schedule(now + permit.gap_s, self._listen_on, permit)

    def _finish(self, event: EngineEvent) -> None:
        self._settle(Outcome.OK, event.tokens, self._call.visit.demand.prompt_tokens, event.worst_gap_s)
        self._shared.clients.answered(self._call, event.tokens, degraded=self._degraded)
        self._close()

    def _fail(self, outcome: Outcome, tokens: int = 0) -> None:
        self._settle(outcome, tokens)
        if EFFECTS[outcome].retry and self._may_repeat:
            self._may_repeat = False
            driver = self._shared.driver
            if driver.again(self._call.id, outcome, driver.now(), self) is None:
                return
        if not self._is_mended(outcome):
            self._shared.clients.failed(self._call, Ending.ENGINE)
            self._close()

    def _is_mended(self, outcome: Outcome) -> bool:
        driver = self._shared.driver
        if not EFFECTS[outcome].mend or self._has_token:
            return False
        return driver.instead(self._call.id, outcome, driver.now(), self)

    # ---- the client and the clock -----------------------------------------------------------

    def client_left(self) -> None:
        if self._ticket is not None:
            self._shared.driver.cancel(self._ticket)
        else:
            self._give_up(Outcome.CLIENT_LEFT)
        self._close()

    def _look(self, permit: Permit) -> None:
        """The gateway's ticker asks this every few ms; here it is asked when the answer may be yes."""
        if self._permit is not permit:
            return
        outcome = overdue(permit, None, self._has_token, self._shared.driver.now())
        if outcome is not None:
            self._time_out(outcome)

    def _listen_on(self, permit: Permit) -> None:
        if self._permit is not permit:
            return
        now = self._shared.driver.now()
        silent_until = self._replica.engine.last_token_at(permit.id, now) + permit.gap_s
        if silent_until <= now:
            self._time_out(Outcome.GAP_TIMEOUT)
        else:
            self._shared.clock.schedule(silent_until, self._listen_on, permit)

    def _time_out(self, outcome: Outcome) -> None:
        self._give_up(outcome)
        if not self._is_mended(outcome):
            self._shared.clients.failed(self._call, Ending.TIMEOUT)
            self._close()

    # ---- the end ----------------------------------------------------------------------------

    def _give_up(self, outcome: Outcome) -> None:
        assert self._permit is not None
        permit, replica = self._permit, self._replica
        tokens = replica.engine.tokens(permit.id, self._shared.driver.now())
        replica.abort(permit.id)
        self._settle(outcome, tokens, still_running=True)

    def _settle(
        self,
        outcome: Outcome,
        output_tokens: int = 0,
        prompt_tokens: int | None = None,
        worst_gap_s: float | None = None,
        *,
        still_running: bool = False,
    ) -> None:
        permit, driver = self._permit, self._shared.driver
        assert permit is not None
        self._permit = None
        del self._shared.running[permit.id]
        driver.settle(permit, outcome, driver.now(), output_tokens, prompt_tokens, worst_gap_s, still_running)

    def _close(self) -> None:
        driver = self._shared.driver
        del self._shared.live[self._call.id]
        driver.close(self._call.id, driver.now())
