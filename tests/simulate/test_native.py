from __future__ import annotations

from dataclasses import replace

from tests.simulate.scripted_front import demand
from tidegate.engines.presets import preset
from tidegate.simulate.clients import Clients
from tidegate.simulate.clock import Clock
from tidegate.simulate.fault import Fault, FaultKind
from tidegate.simulate.native import Native
from tidegate.simulate.replica import SimulatedReplica
from tidegate.simulate.run import simulate
from tidegate.simulate.visit import Demand, Ending, Visit

ENGINE = preset("A100", "llama-3-8b")


def play(demands: list[Demand], faults: list[Fault], replicas: int = 2) -> tuple[list[Visit], list[SimulatedReplica]]:
    clock = Clock()
    clients = Clients(clock, tries=2)
    engines = [SimulatedReplica(f"r{index}", ENGINE, clock) for index in range(replicas)]
    for fault in faults:
        clock.schedule(fault.at, engines[fault.replica].suffer, fault)
    clients.start(Native(engines, clients), demands)
    clock.run()
    return clients.visits, engines


def test_calls_go_round_the_replicas() -> None:
    demands = [replace(demand(), index=index, output_tokens=200) for index in range(4)]
    clock = Clock()
    clients = Clients(clock, tries=1)
    engines = [SimulatedReplica(f"r{index}", ENGINE, clock) for index in range(2)]
    clients.start(Native(engines, clients), demands)
    clock.run(until=0.5)
    assert [engine.reading().running for engine in engines] == [2, 2]


def test_a_crashed_replica_is_called_all_the_same_and_its_requests_are_engine_errors() -> None:
    demands = [replace(demand(), index=index) for index in range(4)]
    visits, _ = play(demands, [Fault(at=0.0, replica=index, kind=FaultKind.CRASH) for index in range(2)])
    assert [visit.ending for visit in visits] == [Ending.ENGINE] * 4
    assert [visit.calls for visit in visits] == [2] * 4


def test_a_stream_that_a_crash_breaks_off_is_an_engine_error() -> None:
    (visit,), _ = play([replace(demand(), output_tokens=1000, max_tokens=1024)], [_crash(at=1.0)], replicas=1)
    assert (visit.ending, visit.ended_at, visit.calls) == (Ending.ENGINE, 1.0, 1)


def test_clients_leave_a_hung_engine() -> None:
    (visit,), engines = play([demand()], [Fault(at=0.0, replica=0, kind=FaultKind.HANG)], replicas=1)
    assert visit.ending is Ending.TIMEOUT
    assert engines[0].reading().waiting == 0


def test_zombie_engines_make_a_burst_much_worse() -> None:
    alive, zombie = (simulate("campaign-bare", policy, 1).visits for policy in ("native", "native:zombie"))
    lost = [sum(not visit.is_answered for visit in visits) for visits in (alive, zombie)]
    assert lost[1] > 3 * lost[0]


def _crash(at: float) -> Fault:
    return Fault(at=at, replica=0, kind=FaultKind.CRASH)
