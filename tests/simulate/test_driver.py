from __future__ import annotations

from dataclasses import replace

import pytest

from tests.simulate.scripted_front import demand
from tidegate.engines.presets import preset
from tidegate.policy.path import Path
from tidegate.policy.path_config import PathConfig
from tidegate.policy.record import Record
from tidegate.policy.timeouts import PhaseConfig, TimeoutsConfig
from tidegate.simulate.clients import Clients
from tidegate.simulate.clock import Clock
from tidegate.simulate.driver import Driver, request_of
from tidegate.simulate.fault import Fault, FaultKind
from tidegate.simulate.policies import replica_config
from tidegate.simulate.replica import SimulatedReplica
from tidegate.simulate.visit import Call, Demand, Ending, Visit

ENGINE = preset("A100", "llama-3-8b")


class RecordingPath(Path):
    def __init__(self, config: PathConfig, now: float) -> None:
        super().__init__(config, now)
        self.records: list[Record] = []

    def close(self, request_id: int, now: float) -> Record:
        self.records.append(super().close(request_id, now))
        return self.records[-1]


class World:
    """A gateway before two engines, one call per client unless a test says otherwise."""

    def __init__(self, config: PathConfig | None = None, replicas: int = 2, tries: int = 1) -> None:
        self.clock = Clock()
        self.clients = Clients(self.clock, tries)
        self.replicas = [SimulatedReplica(f"r{index}", ENGINE, self.clock) for index in range(replicas)]
        config = replace(config or PathConfig(), replicas=tuple(map(replica_config, self.replicas)))
        self.path = RecordingPath(config, 0.0)
        self.driver = Driver(self.path, self.replicas, self.clients, self.clock)

    def run(self, demands: list[Demand], *faults: Fault) -> list[Visit]:
        for fault in faults:
            self.clock.schedule(fault.at, self.replicas[fault.replica].suffer, fault)
        self.clock.schedule(0.0, self.driver.read_engines)
        self.clients.start(self.driver, demands)
        self.clock.run(until=10_000.0)
        assert self.path.view(self.clock.now)["permits"] == 0
        return self.clients.visits


def fault(kind: FaultKind, at: float, replica: int = 0) -> Fault:
    return Fault(at=at, replica=replica, kind=kind)


def test_a_policy_sees_the_bound_the_prompt_and_the_patience_and_neither_the_answer_nor_the_label() -> None:
    request = request_of(Call(7, Visit(replace(demand(patience_s=7.0), output_tokens=77, label="secret")), at=3.0))
    assert (request.prompt_tokens, request.max_tokens, request.first_byte_by) == (100, 256, 10.0)
    assert request.key == "visit-0"
    assert "77" not in repr(request)
    assert "secret" not in repr(request)


def test_an_answered_request_leaves_a_record_with_every_phase() -> None:
    world = World()
    (visit,) = world.run([demand(at=1.0)])
    (record,) = world.path.records
    assert visit.is_answered
    assert (record.first_token_at, record.closed_at) == (visit.first_token_at, visit.ended_at)
    assert (record.prompt_tokens, record.output_tokens, record.attempts) == (100, 10, 1)


def test_a_refused_connection_is_tried_once_on_the_other_replica() -> None:
    world = World()
    visits = world.run([demand(at=0.5 + index / 100) for index in range(8)], fault(FaultKind.CRASH, at=0.4))
    assert all(visit.is_answered and visit.calls == 1 for visit in visits)
    assert {record.replica for record in world.path.records} == {"r1"}


def test_with_every_replica_down_the_client_hears_of_it_at_once() -> None:
    world = World()
    crashes = [fault(FaultKind.CRASH, at=0.0, replica=index) for index in range(2)]
    (visit,) = world.run([demand(at=0.5, patience_s=30.0)], *crashes)
    assert visit.ending in (Ending.ENGINE, Ending.REFUSED)
    assert visit.ended_at < 20.0


def test_a_stream_cut_by_a_crash_ends_as_an_engine_error() -> None:
    world = World(replicas=1)
    (visit,) = world.run([replace(demand(), output_tokens=250)], fault(FaultKind.CRASH, at=1.0))
    assert (visit.ending, visit.ended_at) == (Ending.ENGINE, 1.0)
    assert world.path.records[0].output_tokens > 0


@pytest.mark.parametrize(("at", "outcome"), [(0.0, "first_byte_timeout"), (1.0, "gap_timeout")])
def test_a_hung_engine_is_given_up_after_the_time_that_the_permit_allows(at: float, outcome: str) -> None:
    bounds = PhaseConfig(floor_s=1.0, default_s=2.0, ceiling_s=3.0)
    config = PathConfig(timeouts=TimeoutsConfig(first_byte=bounds, gap=bounds))
    world = World(config, replicas=1)
    (visit,) = world.run([replace(demand(patience_s=60.0), output_tokens=250)], fault(FaultKind.HANG, at))
    assert visit.ending is Ending.TIMEOUT
    assert visit.ended_at == pytest.approx(at + 2.0, abs=0.05)
    assert world.path.records[0].outcome is not None
    assert world.path.records[0].outcome.value == outcome


def test_an_answer_that_takes_too_long_as_a_whole_is_given_up() -> None:
    bounds = PhaseConfig(floor_s=1.0, default_s=2.0, ceiling_s=3.0)
    world = World(PathConfig(timeouts=TimeoutsConfig(total=bounds)), replicas=1)
    (visit,) = world.run([replace(demand(), output_tokens=250)])
    assert (visit.ending, visit.ended_at) == (Ending.TIMEOUT, 2.0)


def test_a_client_that_leaves_the_queue_or_a_stream_costs_nothing_afterwards() -> None:
    world = World(replicas=1)
    crowd = [
        replace(demand(at=index / 1000, patience_s=0.5 + index / 50), prompt_tokens=2000, index=index)
        for index in range(60)
    ]
    visits = world.run(crowd)
    assert {visit.ending for visit in visits} >= {Ending.ANSWERED, Ending.TIMEOUT}
    assert world.replicas[0].reading().kv_used_tokens == 0


def test_a_prompt_that_never_fits_is_refused_once_and_for_all() -> None:
    (visit,) = World(tries=2).run([replace(demand(), prompt_tokens=10_000_000)])
    assert (visit.ending, visit.calls, visit.ended_at) == (Ending.REFUSED, 1, 0.0)


def test_a_client_that_comes_back_keeps_its_first_arrival() -> None:
    world = World(replicas=1, tries=2)
    (visit,) = world.run([demand(patience_s=2.0)], fault(FaultKind.HANG, at=0.0), fault(FaultKind.RESUME, at=2.5))
    assert (visit.is_answered, visit.calls) == (True, 2)
    assert [record.first_arrived_at for record in world.path.records] == [0.0, 0.0]
    assert world.path.records[1].repeat


def test_a_wakeup_that_does_not_move_on_is_reported_and_not_followed_for_ever() -> None:
    class StuckPath(Path):
        def next_wakeup(self) -> float | None:
            return 0.0

    clock = Clock()
    clients = Clients(clock, tries=1)
    driver = Driver(StuckPath(PathConfig(), 0.0), [], clients, clock)
    clients.start(driver, [demand()])
    with pytest.raises(RuntimeError, match="wakeup at 0"):
        clock.run()
