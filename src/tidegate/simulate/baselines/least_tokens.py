"""Plain good balancing: to the engine with the fewest tokens to go, at once, without a queue or a limit.

Tokens to go are the prompts without a first token and, for each answer that runs, the mean length of the answers so
far. What a router such as vLLM's own or LMETRIC's does; on equal engines a gateway adds little to it.
"""

from __future__ import annotations

from tidegate.engines.simulated import EngineEventKind
from tidegate.simulate.calls import RunningCalls
from tidegate.simulate.front import ClientSide, WithoutLedger
from tidegate.simulate.replica import SimulatedReplica
from tidegate.simulate.visit import Call

FIRST_GUESS_TOKENS = 200.0
"""Length of an answer before any has ended."""


class LeastTokens(WithoutLedger):
    def __init__(self, replicas: list[SimulatedReplica], clients: ClientSide) -> None:
        self._running = RunningCalls(replicas, clients, self._hear)
        self.refusals = self._running.refusals
        self._replicas = replicas
        self._answers = 1
        self._answer_tokens = FIRST_GUESS_TOKENS

    def open(self, call: Call) -> None:
        of_model = [replica for replica in self._replicas if replica.model == call.visit.demand.model]
        self._running.send(call, min(of_model, key=self._tokens_to_go))

    def leave(self, call: Call) -> None:
        self._running.leave(call)

    def _tokens_to_go(self, replica: SimulatedReplica) -> float:
        answers = self._running.in_flight(replica) * self._answer_tokens / self._answers
        return self._running.queued_tokens(replica) + answers

    def _hear(self, call: Call, _replica: SimulatedReplica, kind: EngineEventKind) -> None:
        if kind is EngineEventKind.FINISHED:
            self._answers += 1
            self._answer_tokens += call.visit.output_tokens
