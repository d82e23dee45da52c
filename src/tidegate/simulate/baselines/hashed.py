"""Plain session hashing: who begins alike goes to the same replica, however much it has to do.

The key is the longest of the first four blocks of a prompt, about where conversations part; without any, round robin.
"""

from __future__ import annotations

from itertools import count

from tidegate.simulate.calls import RunningCalls
from tidegate.simulate.front import ClientSide, WithoutLedger
from tidegate.simulate.replica import SimulatedReplica
from tidegate.simulate.visit import Call

KEY_BLOCKS = 4
_GOLDEN = 0x9E3779B97F4A7C15
"""Spreads ids that follow each other (Knuth's multiplicative hashing)."""


class Hashed(WithoutLedger):
    def __init__(self, replicas: list[SimulatedReplica], clients: ClientSide) -> None:
        self._running = RunningCalls(replicas, clients)
        self.refusals = self._running.refusals
        self._replicas = replicas
        self._turn = count()

    def open(self, call: Call) -> None:
        blocks = call.visit.demand.blocks[:KEY_BLOCKS]
        drawn = (blocks[-1] * _GOLDEN >> 32) & 0xFFFFFFFF if blocks else next(self._turn)
        self._running.send(call, self._replicas[drawn % len(self._replicas)])

    def leave(self, call: Call) -> None:
        self._running.leave(call)
