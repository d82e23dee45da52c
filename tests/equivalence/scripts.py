"""The scripts that both drivers play: named scenarios, and a storm that has everything in it."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from tests.equivalence.recording_path import Traits
from tests.equivalence.script import Script
from tidegate.engines.simulated import SimulatedConfig
from tidegate.engines.step_model import StepModel
from tidegate.policy.change import Drain
from tidegate.policy.ladder import LadderConfig
from tidegate.policy.path_config import PathConfig
from tidegate.policy.queue import QueueConfig
from tidegate.simulate.fault import Fault, FaultKind
from tidegate.simulate.scenario import Scenario
from tidegate.simulate.scenarios import find_scenario
from tidegate.simulate.scenarios.campaign import Campaign
from tidegate.simulate.visit import Demand

SMALL_ENGINE = SimulatedConfig(
    step=StepModel.from_ms(fixed=10.0, prefill=0.05, sequence=0.1, context=1e-4),
    kv_tokens=8192,
    max_sequences=8,
    chunk_tokens=512,
    context_tokens=4096,
)
LIGHT = "light"
"""The second model of the storm, on its last engine."""
MENDS: dict[FaultKind, tuple[FaultKind, float]] = {
    FaultKind.CRASH: (FaultKind.RESTART, 3.0),
    FaultKind.HANG: (FaultKind.RESUME, 15.0),
    FaultKind.SLOW: (FaultKind.SLOW, 5.0),
}
"""What ends a fault, and after how many seconds on average."""


def of_scenario(scenario: Scenario) -> Script:
    return Script(
        engines=scenario.engines, demands=scenario.demands, tries=scenario.tries, faults=tuple(scenario.faults)
    )


def campaign(seed: int) -> Script:
    """The named campaign around its step: three seconds before, seven of it, five after."""
    named = Campaign(name="campaign-bare", step_at_s=3.0, step_s=7.0, duration_s=15.0)
    return of_scenario(named.build(seed))


def silence_then_200(seed: int) -> Script:
    return of_scenario(find_scenario("silence-then-200").build(seed))


def storm(seed: int, visits: int = 600, engines: int = 4) -> Script:
    """Mixed traffic of all kinds of clients, while engines crash, hang and crawl and operators reload."""
    rng = Random(seed)
    demands = _demands(rng, visits)
    # One engine never notices that clients left, so its aborts end by the clock.
    configs = tuple(replace(SMALL_ENGINE, notices_aborts=index > 0) for index in range(engines))
    script = Script(
        engines=configs,
        demands=demands,
        config=PathConfig(ladder=LadderConfig(light_model=LIGHT)),
        traits={f"visit-{demand.index}": _traits(rng) for demand in demands},
        upstreams={engines - 1: LIGHT},
        stored=tuple(bytes([digit]) for digit in range(4)),
    )
    length_s = demands[-1].at
    return replace(
        script,
        faults=tuple(fault for at in _times(rng, 2.0, length_s) for fault in _trouble(rng, at, engines)),
        changes=(
            *((at, _change(rng, script)) for at in _times(rng, 2.0, length_s)),
            # Afterwards everything serves, or those who wait for a model that nobody has would be all there is.
            *((length_s, Drain(f"r{index}", on=False)) for index in range(engines)),
            (length_s, script.configured()),
        ),
    )


def flaky_engines(seed: int) -> Script:
    """Plain clients whose engines keep crashing, one at a time, and are soon back: retries elsewhere."""
    rng = Random(seed)
    demands = [
        ask(
            index,
            index / 15 + rng.uniform(0.0, 0.02),
            rng.randint(50, 400),
            rng.randint(10, 80),
            draw=rng.getrandbits(64),
        )
        for index in range(400)
    ]
    faults: list[Fault] = []
    for index, at in enumerate(_times(rng, 1.5, demands[-1].at)):
        replica = index % 4
        faults.append(Fault(at=at, replica=replica, kind=FaultKind.CRASH))
        faults.append(Fault(at=at + 0.5, replica=replica, kind=FaultKind.RESTART))
    return Script(engines=(SMALL_ENGINE,) * 4, demands=demands, faults=tuple(faults))


def retry_beside_a_giant() -> Script:
    """A crash sends one request to the other engine, and a giant that waits could have the crashed one."""
    return Script(
        engines=(SMALL_ENGINE,) * 2,
        demands=[ask(0, 0.1, 100, 2000), ask(1, 0.2, 400, 100), ask(2, 0.21, 2000, 2000)],
        traits={"visit-2": Traits(sequences=2)},
        faults=(Fault(at=0.22, replica=1, kind=FaultKind.CRASH),),
    )


def after_a_grace() -> Script:
    """An engine does not notice that its client left; the next one comes when the grace is just over."""
    engine = replace(SMALL_ENGINE, notices_aborts=False, max_sequences=1)
    demands = [ask(0, 0.1, 4000, 90, patience_s=0.15), ask(1, 0.8, 100, 10)]
    return Script(engines=(engine,), demands=demands, tries=1, abort_grace_s=0.5)


def ask(
    index: int, at: float, prompt_tokens: int, output_tokens: int, *, patience_s: float = 5.0, draw: int = 7
) -> Demand:
    """A client who says how much they want, and comes back after a second."""
    return Demand(
        index=index,
        at=at,
        prompt_tokens=prompt_tokens,
        output_tokens=output_tokens,
        max_tokens=output_tokens,
        label="any",
        patience_s=patience_s,
        retry_delay_s=1.0,
        draw=draw,
    )


def _times(rng: Random, mean_s: float, until_s: float) -> list[float]:
    times, at = [], 0.0
    while (at := at + rng.expovariate(1 / mean_s)) < until_s:
        times.append(at)
    return times


def _demands(rng: Random, visits: int) -> list[Demand]:
    demands, at = [], 0.0
    for index in range(visits):
        at += rng.expovariate(rng.choice((8.0, 25.0, 80.0)))
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


def _traits(rng: Random) -> Traits:
    return Traits(
        streaming=rng.random() < 0.7,
        deadline_s=rng.choice((None, None, 1.0, 5.0, 20.0)),
        class_hint=rng.choice((None, None, None, "batch", "other", "unheard-of")),
        upstream=rng.choices((None, LIGHT, "nobody's"), (0.85, 0.12, 0.03))[0],
        tenant=rng.choice(("a", "b")),
        session=f"s{rng.randrange(40)}",
        sequences=rng.choice((1, 1, 1, 1, 2, 4)),
        cache_key=bytes([rng.randrange(8)]) if rng.random() < 0.2 else None,
        is_bounded=rng.random() < 0.9,
        tells_patience=rng.random() < 0.6,
    )


def _trouble(rng: Random, at: float, engines: int) -> tuple[Fault, Fault]:
    kind, index = rng.choice((FaultKind.CRASH, FaultKind.HANG, FaultKind.SLOW)), rng.randrange(engines)
    mend, mean_s = MENDS[kind]
    return (
        Fault(at=at, replica=index, kind=kind, factor=4.0),
        Fault(at=at + rng.expovariate(1 / mean_s), replica=index, kind=mend),
    )


def _change(rng: Random, script: Script) -> PathConfig | Drain:
    engines = len(script.engines)
    if rng.random() < 0.4:
        return Drain(f"r{rng.randrange(engines)}", on=rng.random() < 0.5)
    queue = QueueConfig(max_requests=rng.choice((5, 50, 2000)), max_tokens=rng.choice((20_000, 2_000_000)))
    kept = sorted(rng.sample(range(engines), rng.randint(1, engines)))
    return script.configured(engines=kept, config=replace(script.config, queue=queue))
