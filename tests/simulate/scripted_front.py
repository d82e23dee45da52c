"""A front that does what the test says, so that only the clients are under test."""

from __future__ import annotations

from collections.abc import Callable

from tidegate.simulate.clients import Clients
from tidegate.simulate.clock import Clock
from tidegate.simulate.visit import Call, Demand, Visit


class ScriptedFront:
    """``script`` gets each call at its time, numbered from 1."""

    def __init__(self, script: Callable[[Call, int], None]) -> None:
        self.refusals: dict[str, int] = {}
        self.opened: list[float] = []
        self.left: list[float] = []
        self._script = script

    def open(self, call: Call) -> None:
        self.opened.append(call.at)
        self._script(call, len(self.opened))

    def leave(self, call: Call) -> None:
        self.left.append(call.at + call.visit.demand.patience_s)


def demand(*, patience_s: float = 7.0, at: float = 0.0) -> Demand:
    return Demand(
        index=0,
        at=at,
        prompt_tokens=100,
        output_tokens=10,
        max_tokens=256,
        label="chat",
        patience_s=patience_s,
        retry_delay_s=1.0,
        draw=1,
    )


def visit_of(
    script: Callable[[Call, int, Clients, Clock], None],
    *,
    tries: int = 2,
    patience_s: float = 7.0,
    heeds_retry_after: bool = True,
) -> tuple[Visit, ScriptedFront]:
    """One user against ``script``, to the end."""
    clock = Clock()
    clients = Clients(clock, tries, heeds_retry_after=heeds_retry_after)
    front = ScriptedFront(lambda call, number: script(call, number, clients, clock))
    clients.start(front, [demand(patience_s=patience_s)])
    clock.run()
    return clients.visits[0], front
