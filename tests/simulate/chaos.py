"""A fleet in trouble: random traffic, impatient clients, crashes, hangs, slow engines and reloads.

Everything runs through the simulator's driver on real (simulated) engines; the books are kept here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from random import Random

from tidegate.engines.simulated import SimulatedConfig
from tidegate.engines.step_model import StepModel
from tidegate.policy.change import Drain
from tidegate.policy.decisions import Admit, Answer, Decision, Refuse, Verdict, Wait
from tidegate.policy.outcomes import Outcome
from tidegate.policy.path import Path
from tidegate.policy.path_config import PathConfig
from tidegate.policy.permit import Permit, PermitState
from tidegate.policy.queue import QueueConfig
from tidegate.policy.record import Record
from tidegate.policy.request import Request
from tidegate.simulate.clients import Clients
from tidegate.simulate.clock import Clock
from tidegate.simulate.driver import Driver
from tidegate.simulate.fault import Fault, FaultKind
from tidegate.simulate.policies import replica_config
from tidegate.simulate.replica import SimulatedReplica
from tidegate.simulate.visit import Demand

ENGINE = SimulatedConfig(
    step=StepModel.from_ms(fixed=10.0, prefill=0.05, sequence=0.1, context=1e-4),
    kv_tokens=8192,
    max_sequences=8,
    chunk_tokens=512,
    context_tokens=4096,
)
ENGINES = 5
MENDS: dict[FaultKind, tuple[FaultKind, float]] = {
    FaultKind.CRASH: (FaultKind.RESTART, 5.0),
    FaultKind.HANG: (FaultKind.RESUME, 20.0),
    FaultKind.SLOW: (FaultKind.SLOW, 10.0),
}
"""What ends a fault, and after how many seconds on average."""


class WatchedPath(Path):
    """Keeps the books that Path ought to keep, and compares."""

    def __init__(self, config: PathConfig, now: float, check_every: int) -> None:
        super().__init__(config, now)
        self.counts: Counter[str] = Counter()
        self.open: set[int] = set()
        self.tickets: set[int] = set()
        self.held: dict[int, Permit] = {}
        self.records: list[Record] = []
        self.check_every = check_every

    def offer(self, request: Request, now: float) -> Decision:
        assert request.id not in self.open
        self.open.add(request.id)
        self.counts["offer"] += 1
        return self._note(super().offer(request, now))

    def advance(self, now: float) -> list[Verdict]:
        verdicts = super().advance(now)
        for verdict in verdicts:
            self.tickets.remove(verdict.ticket)
            self._note(verdict.decision)
        self.counts["advance"] += 1
        if not verdicts and self.counts["advance"] % self.check_every == 0:
            self.check(now)
        return verdicts

    def again(self, request_id: int, cause: Outcome, now: float, *, written_tokens: int = 0) -> Admit | Answer | Refuse:
        self.counts["again"] += 1
        decision = self._note(super().again(request_id, cause, now, written_tokens=written_tokens))
        assert not isinstance(decision, Wait)
        return decision

    def instead(self, request_id: int, cause: Outcome, now: float) -> Admit | Answer | Refuse:
        self.counts["instead"] += 1
        decision = self._note(super().instead(request_id, cause, now))
        assert not isinstance(decision, Wait)
        return decision

    def cancel(self, ticket_id: int, now: float) -> None:
        self.counts["cancel"] += 1
        self.tickets.remove(ticket_id)
        super().cancel(ticket_id, now)

    def close(self, request_id: int, now: float) -> Record:
        self.open.remove(request_id)
        self.counts["close"] += 1
        record = super().close(request_id, now)
        self.counts[f"outcome {record.outcome.value}" if record.outcome else "no attempt"] += 1
        self.records.append(record)
        return record

    def _note(self, decision: Decision) -> Decision:
        self.counts[type(decision).__name__] += 1
        if isinstance(decision, Wait):
            self.tickets.add(decision.ticket)
        elif isinstance(decision, Admit):
            assert decision.permit.id not in self.held
            self.held[decision.permit.id] = decision.permit
        return decision

    def check(self, now: float) -> None:
        """Safety: Path's books and these agree, on every replica."""
        self.held = {key: permit for key, permit in self.held.items() if permit.state is not PermitState.SETTLED}
        view = self.view(now)
        assert view["open_requests"] == len(self.open)
        assert view["waiting"] == len(self.tickets)
        assert view["permits"] == len(self.held)
        assert view["permit_leaks"] == 0
        for upstream in self.upstreams.values():
            for placed in upstream.replicas:
                own = [permit for permit in self.held.values() if permit.replica == placed.name]
                assert set(placed.permits) <= {permit.id for permit in own}
                assert placed.in_flight == sum(permit.sequences for permit in placed.permits.values())
                assert placed.slots.held == sum(permit.slots for permit in placed.permits.values())
                assert 0 <= placed.pending_tokens <= sum(permit.prompt_tokens for permit in own)


class Chaos:
    def __init__(self, visits: int, seed: int, check_every: int) -> None:
        self.rng = Random(seed)
        self.clock = Clock()
        self.clients = Clients(self.clock, tries=2)
        self.counts: Counter[str] = Counter()
        # One engine never notices that clients left, so its aborts end by the clock.
        engines = [replace(ENGINE, notices_aborts=index > 0) for index in range(ENGINES)]
        self.replicas = [SimulatedReplica(f"r{index}", each, self.clock) for index, each in enumerate(engines)]
        self.config = PathConfig(replicas=tuple(map(replica_config, self.replicas)))
        self.path = WatchedPath(self.config, 0.0, check_every)
        self.driver = Driver(self.path, self.replicas, self.clients, self.clock)
        self.demands = self._demands(visits)
        self.length_s = self.demands[-1].at

    def run(self) -> None:
        """The storm, then calm: everything mended, nothing asked for, all grace periods over."""
        self.clock.schedule(0.0, self.driver.read_engines)
        self._every(3.0, self._break_something)
        self._every(5.0, self._reload)
        self.clients.start(self.driver, self.demands)
        self.clock.run(until=self.length_s)
        self._mend_everything()
        self.clock.run(until=self.length_s + 3600.0)

    @property
    def events(self) -> int:
        """Arrivals, departures from the queue, ends of requests, faults and reloads."""
        path = self.path.counts
        return path["offer"] + path["cancel"] + path["close"] + self.counts["fault"] + self.counts["reload"]

    def _demands(self, visits: int) -> list[Demand]:
        rng, demands, at = self.rng, [], 0.0
        for index in range(visits):
            at += rng.expovariate(rng.choice((10.0, 30.0, 90.0)))
            output_tokens = max(1, round(rng.expovariate(1 / 80)))
            demands.append(
                Demand(
                    index=index,
                    at=at,
                    prompt_tokens=max(1, round(rng.lognormvariate(5.5, 1.3))),
                    output_tokens=output_tokens,
                    max_tokens=max(output_tokens, rng.choice((64, 256, 1024, 4096))),
                    label="any",
                    patience_s=rng.choice((0.05, 0.5, 3.0, 30.0)) * rng.uniform(0.5, 1.5),
                    retry_delay_s=rng.uniform(0.0, 2.0),
                    draw=rng.getrandbits(64),
                )
            )
        return demands

    def _every(self, mean_s: float, action: Callable[[], None]) -> None:
        at = 0.0
        while (at := at + self.rng.expovariate(1 / mean_s)) < self.length_s:
            self.clock.schedule(at, action)

    def _break_something(self) -> None:
        kind = self.rng.choice((FaultKind.CRASH, FaultKind.HANG, FaultKind.SLOW))
        index = self.rng.randrange(ENGINES)
        mend, mean_s = MENDS[kind]
        self._suffer(Fault(at=self.clock.now, replica=index, kind=kind, factor=4.0))
        mended_at = self.clock.now + self.rng.expovariate(1 / mean_s)
        self.clock.schedule(mended_at, self._suffer, Fault(at=mended_at, replica=index, kind=mend))

    def _suffer(self, fault: Fault) -> None:
        self.counts["fault"] += 1
        self.counts[fault.kind.value] += 1
        self.replicas[fault.replica].suffer(fault)

    def _reload(self) -> None:
        self.counts["reload"] += 1
        rng = self.rng
        if rng.random() < 0.3:
            self.driver.apply(Drain(f"r{rng.randrange(ENGINES)}", on=rng.random() < 0.5))
            return
        kept = rng.sample(self.config.replicas, rng.randint(1, ENGINES))
        queue = QueueConfig(max_requests=rng.choice((5, 50, 2000)), max_tokens=rng.choice((20_000, 2_000_000)))
        self.driver.apply(replace(self.config, replicas=tuple(kept), queue=queue))

    def _mend_everything(self) -> None:
        now = self.clock.now
        self.driver.apply(self.config)
        for index, placed in enumerate(self.replicas):
            self.driver.apply(Drain(placed.name, on=False))
            for kind in (FaultKind.RESTART, FaultKind.RESUME, FaultKind.SLOW):
                placed.suffer(Fault(at=now, replica=index, kind=kind))
