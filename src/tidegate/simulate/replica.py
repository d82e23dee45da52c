"""A simulated engine on the clock: it wakes itself and tells one listener."""

from __future__ import annotations

from collections.abc import Callable

from tidegate.engines.kv_memory import KvMemory
from tidegate.engines.simulated import EngineEvent, SimulatedConfig, SimulatedEngine
from tidegate.policy.decisions import Alteration
from tidegate.policy.reading import Reading
from tidegate.simulate.clock import Clock
from tidegate.simulate.fault import Fault, FaultKind
from tidegate.simulate.scenario import Part
from tidegate.simulate.visit import MODEL, Demand


class SimulatedReplica:
    def __init__(
        self, name: str, config: SimulatedConfig, clock: Clock, part: Part | None = None, model: str = MODEL
    ) -> None:
        self.name = name
        self.part = part
        """Its part of a shared pool, if it has one."""
        self.model = model if part is None else part.model
        self.engine = SimulatedEngine(config)
        self._clock = clock
        self._listener: Callable[[EngineEvent], None] = _ignore
        self._wakes_at = float("inf")

    def listen(self, listener: Callable[[EngineEvent], None]) -> None:
        """``listener`` hears every engine event at its time."""
        self._listener = listener

    def submit(self, request_id: int, demand: Demand, altered: Alteration | None = None) -> bool:
        """False: the connection was refused. Of what a gateway altered, the bound counts; tools and messages are not
        told apart here."""
        bound = demand.max_tokens
        if altered is not None and altered.max_tokens is not None:
            bound = min(bound, altered.max_tokens)
        output_tokens = min(demand.output_tokens, bound)
        taken = self.engine.submit(
            request_id, demand.prompt_tokens, output_tokens, self._clock.now, bound, demand.blocks
        )
        self._set_alarm()
        return taken

    def abort(self, request_id: int) -> None:
        self.engine.abort(request_id, self._clock.now)
        self._set_alarm()

    def memory(self) -> KvMemory:
        return self.engine.memory(self._clock.now)

    def reading(self) -> Reading:
        return self.engine.reading(self._clock.now)

    def suffer(self, fault: Fault) -> None:
        """Apply a fault now."""
        now = self._clock.now
        match fault.kind:
            case FaultKind.CRASH:
                self.engine.crash(now)
            case FaultKind.RESTART:
                self.engine.restart()
            case FaultKind.HANG:
                self.engine.hang(now)
            case FaultKind.RESUME:
                self.engine.resume(now)
            case FaultKind.SLOW:
                self.engine.slow(fault.factor, now)
        self._set_alarm()

    def _set_alarm(self) -> None:
        due = self.engine.next_event_at()
        if due is not None and due < self._wakes_at:
            self._wakes_at = due
            self._clock.schedule(due, self._wake, due)

    def _wake(self, due: float) -> None:
        # An alarm that a later, earlier one replaced has nothing left to tell.
        if due != self._wakes_at:
            return
        self._wakes_at = float("inf")
        for event in self.engine.advance(self._clock.now):
            self._listener(event)
        self._set_alarm()


def _ignore(event: EngineEvent) -> None:
    """Before anyone listens."""
