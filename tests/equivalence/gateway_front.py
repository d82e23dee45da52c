"""What the simulator's clients call when the gateway's driver decides."""

from __future__ import annotations

from tests.equivalence.exchange import Exchange, Shared
from tidegate.engines.simulated import EngineEvent
from tidegate.gateway.driver import Driver
from tidegate.policy.decisions import Refuse
from tidegate.policy.path import Path
from tidegate.simulate.clients import Clients
from tidegate.simulate.clock import Clock
from tidegate.simulate.driver import READING_PERIOD_S
from tidegate.simulate.replica import SimulatedReplica
from tidegate.simulate.visit import Call


class GatewayFront:
    """A ``Front`` for the simulator's clients, with the gateway's driver behind it."""

    def __init__(
        self, path: Path, driver: Driver, replicas: list[SimulatedReplica], clients: Clients, clock: Clock
    ) -> None:
        self.refusals: dict[str, int] = {}
        self._shared = Shared(driver, clients, clock, {each.name: each for each in replicas}, self._count)
        self._path = path
        for replica in replicas:
            replica.listen(self._hear)

    def open(self, call: Call) -> None:
        Exchange(self._shared, call).start()

    def leave(self, call: Call) -> None:
        self._shared.live[call.id].client_left()

    def _hear(self, event: EngineEvent) -> None:
        exchange = self._shared.running.get(event.id)
        if exchange is not None:
            exchange.hear(event)

    def read_engines(self) -> None:
        """A look at every engine, as often as the simulator's driver takes one."""
        shared = self._shared
        for name, replica in shared.replicas.items():
            shared.driver.observe(name, replica.reading())
        if shared.clients.live or self._path.next_wakeup() is not None:
            shared.clock.schedule(shared.clock.now + READING_PERIOD_S, self.read_engines)

    def _count(self, refusal: Refuse) -> None:
        self.refusals[refusal.reason.value] = self.refusals.get(refusal.reason.value, 0) + 1
