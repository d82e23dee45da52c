"""One list of what happens in the world, and the two stages on which it is played."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from tests.equivalence.gateway_front import GatewayFront
from tests.equivalence.ordered_loop import LoopClock, OrderedLoop
from tests.equivalence.recording_path import RecordingPath, Traits
from tests.equivalence.story import Story
from tidegate.engines.simulated import EngineEvent, EngineEventKind, SimulatedConfig
from tidegate.gateway import driver as gateway
from tidegate.policy.change import Drain
from tidegate.policy.groups import GroupsConfig
from tidegate.policy.path_config import PathConfig
from tidegate.simulate import driver as simulate
from tidegate.simulate.clients import Clients
from tidegate.simulate.clock import Clock
from tidegate.simulate.fault import Fault
from tidegate.simulate.policies import replica_config
from tidegate.simulate.replica import SimulatedReplica
from tidegate.simulate.visit import Demand

CALM_S = 3600.0
"""After the last arrival: every timeout and every grace period is over by then."""
STORED_ANSWER = b'{"choices":[]}'


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Script:
    """What happens whatever is decided: who calls when and for how long, what breaks, what is reloaded.

    What engines say follows from it and from the decisions, and nothing else.
    """

    engines: tuple[SimulatedConfig, ...]
    demands: list[Demand]
    tries: int = 2
    config: PathConfig = field(default=PathConfig())
    faults: tuple[Fault, ...] = ()
    changes: tuple[tuple[float, PathConfig | Drain], ...] = ()
    """(at, change); a configuration names its replicas itself (``configured``)."""
    traits: Mapping[str, Traits] = field(default_factory=dict)
    """By request key; who is not named is plain."""
    upstreams: Mapping[int, str] = field(default_factory=dict)
    """By engine, of those that serve another model than the simulator's one."""
    groups: GroupsConfig = field(default=GroupsConfig())
    """One pool, whose groups bear the names of the upstreams; a token is a byte."""
    abort_grace_s: float = 2.0
    stored: tuple[bytes, ...] = ()
    """Cache keys of answers that were given before."""

    def __repr__(self) -> str:
        """Without what every configuration has in it, which would be most of the text."""
        changes = [
            (at, change if isinstance(change, Drain) else ([each.name for each in change.replicas], change.queue))
            for at, change in self.changes
        ]
        demands = [(d.index, d.at, d.prompt_tokens, d.output_tokens, d.max_tokens, d.patience_s) for d in self.demands]
        return f"Script({len(self.engines)} engines, {demands}, {self.traits}, {self.faults}, {changes})"

    @property
    def ends_at(self) -> float:
        times = [demand.at for demand in self.demands] + [at for at, _ in self.changes]
        return max([*times, *(fault.at for fault in self.faults)]) + CALM_S

    def configured(self, *, engines: list[int] | None = None, config: PathConfig | None = None) -> PathConfig:
        """``config`` (the script's own by default) with these engines (all by default) as replicas."""
        kept = range(len(self.engines)) if engines is None else engines
        replicas = [replica_config(SimulatedReplica(f"r{each}", self.engines[each], Clock())) for each in kept]
        named = [
            replace(each, upstream=self.upstreams.get(index, each.upstream), abort_grace_s=self.abort_grace_s)
            for index, each in zip(kept, replicas, strict=True)
        ]
        if self.groups.pools:
            named = [
                replace(each, group=each.upstream, capacity=replace(each.capacity, bytes_per_token=1)) for each in named
            ]
        return replace(config or self.config, replicas=tuple(named), groups=self.groups)


class HalfMuteReplica(SimulatedReplica):
    """Says nothing of first tokens in answers that come whole: nobody could see them."""

    def __init__(self, name: str, config: SimulatedConfig, clock: Clock, path: RecordingPath) -> None:
        super().__init__(name, config, clock)
        self._path = path

    def listen(self, listener: Callable[[EngineEvent], None]) -> None:
        def hear(event: EngineEvent) -> None:
            if event.kind is not EngineEventKind.FIRST_TOKEN or event.id not in self._path.whole:
                listener(event)

        super().listen(hear)


class Stage:
    """A script's world on one clock, before a driver is put into it."""

    def __init__(self, script: Script, clock: Clock) -> None:
        self.script = script
        self.clock = clock
        self.path = RecordingPath(script.configured(), 0.0, script.traits)
        self.clients = Clients(clock, script.tries)
        self.replicas = [
            HalfMuteReplica(f"r{index}", engine, clock, self.path) for index, engine in enumerate(script.engines)
        ]

    def set_going(self, front: simulate.Driver | GatewayFront, apply: Callable[[PathConfig | Drain], object]) -> None:
        script, clock = self.script, self.clock
        for key in script.stored:
            self.path.remember(key, STORED_ANSWER, 0.0)
        for fault in script.faults:
            clock.schedule(fault.at, self.replicas[fault.replica].suffer, fault)
        for at, change in script.changes:
            clock.schedule(at, self._change, apply, change)
        clock.schedule(0.0, front.read_engines)
        self.clients.start(front, script.demands)

    def _change(self, apply: Callable[[PathConfig | Drain], object], change: PathConfig | Drain) -> None:
        apply(change)

    def story(self) -> Story:
        return self.path.story(self.script.ends_at)


def play_simulated(script: Script) -> Story:
    """With the simulator's driver on its heap of events."""
    stage = Stage(script, Clock())
    driver = simulate.Driver(stage.path.as_path, list(stage.replicas), stage.clients, stage.clock)
    stage.set_going(driver, driver.apply)
    stage.clock.run(until=script.ends_at)
    return stage.story()


def play_gateway(script: Script, driver_type: type[gateway.Driver] = gateway.Driver) -> Story:
    """With the gateway's driver on an event loop."""
    loop = OrderedLoop()
    try:
        stage = Stage(script, LoopClock(loop))
        driver = driver_type(stage.path.as_path, loop)
        front = GatewayFront(stage.path.as_path, driver, list(stage.replicas), stage.clients, stage.clock)
        stage.set_going(front, driver.apply)
        loop.run_until(script.ends_at)
        return stage.story()
    finally:
        loop.close()
