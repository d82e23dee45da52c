"""One scenario under one policy with one seed."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from time import perf_counter

from tidegate.simulate.clients import Clients
from tidegate.simulate.clock import Clock
from tidegate.simulate.policies import find_policy
from tidegate.simulate.scenario import Scenario
from tidegate.simulate.scenarios import find_scenario
from tidegate.simulate.stage import Setup, Stage
from tidegate.simulate.visit import Ending, Visit
from tidegate.simulate.watch import Watch

PATIENCE_OF_THE_RUN_S = 900.0
"""A visit that has not ended this long after the last arrival is a timeout."""


@dataclass(frozen=True, slots=True)
class Run:
    scenario: Scenario
    policy: str
    seed: int
    visits: list[Visit]
    preemptions: int
    wall_s: float
    refusals: dict[str, int] = field(default_factory=dict)
    """Refused calls by the gateway's reason."""
    played: str = ""
    """Of a policy that tries several (``cap:sweep``), the one that this is a run of."""
    refused_after_s: list[float] = field(default_factory=list)
    """Of every refused call, the seconds from the call to the refusal."""
    gaps: Counter[int] = field(default_factory=Counter)
    """Gaps between two tokens of a stream, of all engines, by ``longest_step.bucket``."""
    watch: Watch | None = None
    """What was seen of the engines' memory."""


def simulate(scenario_name: str, policy_name: str, seed: int) -> Run:
    """Raises ConfigError for an unknown scenario or policy. Equal arguments give equal runs, ``wall_s`` apart."""
    started = perf_counter()
    policy = find_policy(policy_name)
    scenario = find_scenario(scenario_name).build(seed)
    clock = Clock()
    clients = Clients(
        clock,
        scenario.tries,
        heeds_retry_after=scenario.heeds_retry_after,
        returns_after_timeout=scenario.returns_after_timeout,
    )
    setup = policy(Stage(scenario, seed, clock, clients))
    watch = Watch(scenario, setup.front, setup.replicas, clients, clock)
    clock.schedule(clock.now, watch.look)
    play(scenario, setup, clock, clients)
    return Run(
        scenario=scenario,
        policy=policy_name,
        seed=seed,
        visits=clients.visits,
        preemptions=sum(replica.engine.preemptions for replica in setup.replicas),
        wall_s=perf_counter() - started,
        refusals=setup.front.refusals,
        refused_after_s=clients.refused_after_s,
        gaps=sum((replica.engine.steps.gaps for replica in setup.replicas), Counter()),
        watch=watch,
    )


def play(scenario: Scenario, setup: Setup, clock: Clock, clients: Clients) -> None:
    """Run everything that the scenario asks for to its end."""
    for fault in scenario.faults:
        clock.schedule(fault.at, setup.replicas[fault.replica].suffer, fault)
    if scenario.loop is not None:
        clients.start(setup.front, scenario.demands, scenario.loop.users)
        clock.run(until=scenario.loop.duration_s)
        clients.visits[:] = [visit for visit in clients.visits if visit.ending is not None]
        return
    clients.start(setup.front, scenario.demands)
    last_arrival = max((demand.at for demand in scenario.demands), default=0.0)
    end = last_arrival + PATIENCE_OF_THE_RUN_S
    clock.run(until=end)
    for visit in clients.visits:
        if visit.ending is None:
            visit.ending, visit.ended_at = Ending.TIMEOUT, end
