"""Computing quiet runs in one go must not be distinguishable from counting every step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from hypothesis import example, given, settings
from hypothesis import strategies as st

from tidegate.engines.simulated import EngineEvent, SimulatedConfig, SimulatedEngine
from tidegate.engines.step_model import StepModel

COSTS = st.builds(
    StepModel.from_ms,
    fixed=st.floats(0.5, 40.0),
    prefill=st.floats(0.01, 0.3),
    sequence=st.floats(0.0, 0.1),
    context=st.sampled_from([0.0, 8.6e-5, 1e-2]),
    quadratic=st.sampled_from([0.0, 2.8e-6]),
)
CONFIGS = st.builds(
    SimulatedConfig,
    step=COSTS,
    kv_tokens=st.integers(128, 4096),
    max_sequences=st.integers(1, 16),
    chunk_tokens=st.integers(16, 256),
    block_tokens=st.sampled_from([1, 4, 16]),
    notices_aborts=st.booleans(),
)


@dataclass(frozen=True)
class Action:
    """One thing done to the engine, ``pause_s`` after the one before."""

    name: str
    pause_s: float
    target: int = 0
    prompt_tokens: int = 1
    output_tokens: int = 1


PAUSES = st.one_of(st.just(0.0), st.floats(0.0, 0.1), st.floats(0.0, 5.0))
ARRIVALS = st.builds(
    Action,
    name=st.just("submit"),
    pause_s=PAUSES,
    prompt_tokens=st.integers(1, 600),
    output_tokens=st.integers(1, 120),
)
INTERVENTIONS: dict[str, Callable[[SimulatedEngine, Action, float], None]] = {
    "abort": lambda engine, action, now: engine.abort(action.target, now),
    "slow": lambda engine, _, now: engine.slow(2.5, now),
    "normal": lambda engine, _, now: engine.slow(1.0, now),
    "hang": lambda engine, _, now: engine.hang(now),
    "resume": lambda engine, _, now: engine.resume(now),
    "crash": lambda engine, _, now: engine.crash(now),
    "restart": lambda engine, _, now: engine.restart(),
}


OTHERS = st.builds(
    Action,
    name=st.sampled_from(["abort", "read", "look", *INTERVENTIONS]),
    pause_s=PAUSES,
    target=st.integers(0, 60),
)
WORKLOADS = st.lists(st.one_of(ARRIVALS, ARRIVALS, ARRIVALS, OTHERS), min_size=1, max_size=60)


def do(engine: SimulatedEngine, action: Action, request_id: int, now: float) -> object:
    """What the engine answered; None for what has no answer."""
    match action.name:
        case "submit":
            return engine.submit(request_id, action.prompt_tokens, action.output_tokens, now)
        case "read":
            return engine.reading(now)
        case "look":
            return engine.tokens(action.target, now), engine.last_token_at(action.target, now)
    INTERVENTIONS[action.name](engine, action, now)
    return None


def history(config: SimulatedConfig, actions: list[Action]) -> tuple[list[EngineEvent], list[object], int]:
    """Everything the engine said, in order, its answers and its preemptions."""
    engine = SimulatedEngine(config)
    events: list[EngineEvent] = []
    answers: list[object] = []
    now = 0.0
    for request_id, action in enumerate(actions):
        now += action.pause_s
        while (due := engine.next_event_at()) is not None and due <= now:
            events += engine.advance(due)
        answers.append(do(engine, action, request_id, now))
    while (due := engine.next_event_at()) is not None:
        events += engine.advance(due)
    answers.append(engine.reading(now + 1e6))
    return events, answers, engine.preemptions


TIGHT = SimulatedConfig(
    step=StepModel.from_ms(10, 0.1, 0.03, 1e-2), kv_tokens=512, max_sequences=8, chunk_tokens=64, block_tokens=4
)
BURST = [Action("submit", 0.01, prompt_tokens=90, output_tokens=100) for _ in range(8)]


@settings(max_examples=300, deadline=None)
@given(config=CONFIGS, actions=WORKLOADS)
@example(config=TIGHT, actions=BURST)
def test_skipping_quiet_steps_gives_the_same_history_as_counting_them(
    config: SimulatedConfig, actions: list[Action]
) -> None:
    counted = history(replace(config, skips_quiet_steps=False), actions)
    assert history(config, actions) == counted


def test_the_example_above_really_preempts() -> None:
    assert history(TIGHT, BURST)[2] > 0


@settings(max_examples=100, deadline=None)
@given(config=CONFIGS, actions=st.lists(st.one_of(ARRIVALS, OTHERS), min_size=1, max_size=60))
def test_an_engine_left_alone_ends_empty(config: SimulatedConfig, actions: list[Action]) -> None:
    engine = SimulatedEngine(config)
    now = 0.0
    for request_id, action in enumerate(actions):
        now += action.pause_s
        do(engine, action, request_id, now)
    engine.resume(now)
    engine.restart()
    engine.advance(now + 1e6)
    reading = engine.reading(now + 1e6)
    assert (reading.running, reading.waiting, reading.kv_used_tokens) == (0, 0, 0)
