"""What each baseline lets in, keeps waiting and refuses, on a simulated engine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.simulate.scripted_front import demand
from tidegate.engines.presets import preset
from tidegate.errors import ConfigError
from tidegate.simulate.baselines.bound import chosen, work_s
from tidegate.simulate.baselines.fluid import Fluid
from tidegate.simulate.baselines.gradient import INITIAL, LEAST, MOST, Gradient, Gradient2
from tidegate.simulate.baselines.least_tokens import LeastTokens
from tidegate.simulate.baselines.named import BASELINES
from tidegate.simulate.baselines.saturation import TTL_S, SaturationGate
from tidegate.simulate.baselines.semaphore import Semaphore
from tidegate.simulate.clients import Clients
from tidegate.simulate.clock import Clock
from tidegate.simulate.front import LedgerFront
from tidegate.simulate.native import Native
from tidegate.simulate.replica import SimulatedReplica
from tidegate.simulate.report import report
from tidegate.simulate.run import simulate
from tidegate.simulate.scenarios import find_scenario
from tidegate.simulate.visit import Demand, Ending

ENGINE = preset("A100", "llama-3-8b")
Build = Callable[[list[SimulatedReplica], Clients, Clock], LedgerFront]


class Play:
    """Demands on one front, up to a moment."""

    def __init__(self, build: Build, demands: list[Demand], *, replicas: int = 1, tries: int = 1) -> None:
        self.clock = Clock()
        self.clients = Clients(self.clock, tries=tries)
        self.engines = [SimulatedReplica(f"r{index}", ENGINE, self.clock) for index in range(replicas)]
        self.front = build(self.engines, self.clients, self.clock)
        self.clients.start(self.front, demands)

    def running(self) -> list[int]:
        return [(engine.reading().running or 0) + (engine.reading().waiting or 0) for engine in self.engines]

    def endings(self) -> list[Ending | None]:
        self.clock.run()
        return [visit.ending for visit in self.clients.visits]


def many(count: int, **fields: object) -> list[Demand]:
    return [replace(demand(), index=index, **fields) for index in range(count)]  # type: ignore[arg-type]  # by keyword


def semaphore(places: int, most_waiting: float = float("inf"), timeout_s: float = float("inf")) -> Build:
    return lambda replicas, clients, clock: Semaphore(replicas, clients, clock, places, most_waiting, timeout_s)


def gate(*, sheds: bool = False) -> Build:
    return lambda replicas, clients, clock: SaturationGate(replicas, clients, clock, 2.0, sheds=sheds)


def test_a_cap_refuses_what_would_make_more_prompt_tokens_wait_but_takes_any_single_prompt() -> None:
    play = Play(lambda replicas, clients, _: Native(replicas, clients, 1000), many(4, prompt_tokens=600))
    assert play.endings() == [Ending.ANSWERED, Ending.REFUSED, Ending.REFUSED, Ending.REFUSED]
    assert play.front.refusals == {"queue_full": 3}
    alone = Play(lambda replicas, clients, _: Native(replicas, clients, 100), many(1, prompt_tokens=5000))
    assert alone.endings() == [Ending.ANSWERED]


def test_a_cap_counts_only_prompts_without_a_first_token() -> None:
    later = replace(demand(), index=1, at=1.0, prompt_tokens=600)
    play = Play(
        lambda replicas, clients, _: Native(replicas, clients, 1000),
        [*many(1, prompt_tokens=600, output_tokens=200), later],
    )
    assert play.endings() == [Ending.ANSWERED, Ending.ANSWERED]


def test_a_semaphore_runs_so_many_on_each_engine_and_the_rest_in_order() -> None:
    play = Play(semaphore(2), many(7, output_tokens=100), replicas=2)
    play.clock.run(until=0.5)
    assert play.running() == [2, 2]
    assert play.endings() == [Ending.ANSWERED] * 7
    starts = [visit.first_token_at or 0.0 for visit in play.clients.visits]
    assert starts == sorted(starts)


def test_a_semaphores_place_is_free_again_when_a_client_leaves_the_engine_or_the_queue() -> None:
    impatient = many(2, prompt_tokens=12_000, patience_s=0.2)
    waiting = [replace(demand(), index=2, patience_s=0.1), replace(demand(), index=3)]
    play = Play(semaphore(1), [*impatient, *waiting])
    assert play.endings() == [Ending.TIMEOUT, Ending.TIMEOUT, Ending.TIMEOUT, Ending.ANSWERED]


def test_a_bounded_queue_refuses_and_what_waits_too_long_is_told_to_come_back() -> None:
    demands = many(4, output_tokens=1000, max_tokens=1024)
    play = Play(semaphore(1, most_waiting=2, timeout_s=3.0), demands)
    assert play.endings() == [Ending.ANSWERED, Ending.REFUSED, Ending.REFUSED, Ending.REFUSED]
    assert play.front.refusals == {"queue_full": 1, "queue_timeout": 2}


def test_a_gradient_grows_while_times_are_steady_and_shrinks_when_they_rise() -> None:
    limit = Gradient()
    for second in range(60):
        for _ in range(10):
            limit.add(0.1, 100, float(second))
    assert limit.value > INITIAL + 30
    grown = limit.value
    for second in range(60, 120):
        for _ in range(10):
            limit.add(1.0, 100, float(second))
    assert LEAST <= limit.value < grown / 2


def test_a_gradient_holds_while_few_are_in_flight_and_stays_in_its_bounds() -> None:
    idle, busy = Gradient(), Gradient()
    for second in range(600):
        for _ in range(10):
            idle.add(0.1, 5, float(second))
            busy.add(0.1, 1000, float(second))
    assert (idle.value, busy.value) == (INITIAL, MOST)


def test_a_gradient_forgets_a_slow_past_faster_than_its_average_does() -> None:
    slow = Gradient()
    for _ in range(10):
        slow.add(10.0, 100, 1.0)
    for second in range(2, 60):
        for _ in range(10):
            slow.add(0.1, 100, float(second))
    assert slow._long_s < 1.0


def test_above_the_gradients_limit_calls_are_refused_at_once() -> None:
    play = Play(Gradient2, many(30, output_tokens=200))
    assert play.endings().count(Ending.REFUSED) == 30 - INITIAL
    assert play.front.refusals == {"limit": 30 - INITIAL}


def test_a_gradient_hears_of_first_tokens_and_of_those_that_leave() -> None:
    play = Play(Gradient2, [*many(1, patience_s=0.001), *many(15, at=0.5, output_tokens=20)])
    play.clock.run()
    assert isinstance(play.front, Gradient2)
    assert play.front.limits["r0"]._windows == 0
    assert len(play.front.limits["r0"]._samples) == 15


def test_a_saturated_fleet_keeps_requests_at_the_gate_and_a_burst_passes_between_two_scrapes() -> None:
    play = Play(gate(), many(600, prompt_tokens=2000, output_tokens=400, max_tokens=512))
    play.clock.run(until=0.06)
    assert 40 < play.running()[0] <= 55
    play.clock.run(until=20.0)
    reading = play.engines[0].reading()
    assert (reading.waiting or 0) < 60
    assert (reading.running or 0) < 260


def test_what_no_engine_has_room_for_is_refused_after_a_minute() -> None:
    demands = many(600, prompt_tokens=2000, output_tokens=1000, max_tokens=1024, patience_s=300.0)
    play = Play(gate(), demands)
    play.clock.run(until=TTL_S + 1)
    assert play.front.refusals["queue_timeout"] > 100


def test_whoever_leaves_the_gate_or_an_engine_is_forgotten() -> None:
    demands = many(600, prompt_tokens=2000, output_tokens=400, max_tokens=512, patience_s=1.0)
    play = Play(gate(), demands)
    assert play.endings().count(Ending.TIMEOUT) > 400
    assert play.running() == [0]


def test_the_admitter_refuses_more_the_fuller_the_fleet_is() -> None:
    early = [replace(each, draw=each.index << 48) for each in many(400, prompt_tokens=2000, output_tokens=300)]
    late = [replace(each, index=400 + each.index, at=2.0, draw=(each.index * 163) << 32) for each in many(400, at=2.0)]
    play = Play(gate(sheds=True), [*early, *late])
    play.clock.run(until=1.9)
    assert play.front.refusals == {}
    play.clock.run(until=2.1)
    assert play.front.refusals["shed"] > 100


def test_the_fluid_serves_the_fleets_rate_and_refuses_what_would_be_late() -> None:
    scenario = find_scenario("silence-then-200").build(1)
    clock = Clock()
    clients = Clients(clock, tries=1)
    front = Fluid(scenario, clients, clock)
    clients.start(front, scenario.demands)
    clock.run()
    endings = [visit.ending for visit in clients.visits]
    assert set(endings) == {Ending.ANSWERED, Ending.REFUSED}
    first_s = [visit.first_token_at - visit.demand.at for visit in clients.visits if visit.first_token_at is not None]
    assert max(first_s) <= scenario.slo.ttft_s


def test_the_fluid_forgets_whoever_leaves() -> None:
    scenario = find_scenario("silence-then-200").build(1)
    clock = Clock()
    clients = Clients(clock, tries=1)
    clients.start(Fluid(scenario, clients, clock), [replace(each, patience_s=0.01) for each in scenario.demands])
    clock.run()
    assert Ending.TIMEOUT in {visit.ending for visit in clients.visits}


@pytest.mark.parametrize(
    "name",
    [
        "cap:8000",
        "static:64",
        "smg",
        "smg:64",
        "gradient2",
        "llm-d",
        "llm-d:shed",
        "bound",
        "bound:tokens",
        "bound:blind",
        "bound:fluid",
        "least-tokens",
    ],
)
def test_every_baseline_plays_a_scenario_to_its_end(name: str) -> None:
    found = report(simulate("silence-then-200", name, 1))
    assert found["policy"] == name
    assert 0 < found["goodput_requests"] <= 1
    assert found["pool"] is None


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("cap", "cap:: expected a whole number of prompt tokens"),
        ("cap:many", "cap:many: expected a whole number"),
        ("static:0", "static:0: expected a whole number of requests"),
        ("smg:x", "smg:x: expected a whole number of slots"),
        ("llm-d:hard", "llm-d:hard: expected llm-d or llm-d:shed"),
        ("gradient2:9", "gradient2:9: expected gradient2"),
        ("bound:1", "bound:1: expected bound or bound:tokens or bound:blind or bound:fluid"),
        ("least-tokens:9", "least-tokens:9: expected least-tokens"),
    ],
)
def test_a_wrong_parameter_is_answered_with_what_is_expected(name: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        simulate("silence-then-200", name, 1)


def test_the_bound_knows_one_model_only_and_no_closed_loop() -> None:
    with pytest.raises(ConfigError, match="has several models"):
        simulate("three-models", "bound", 1)
    with pytest.raises(ConfigError, match="is a closed loop"):
        simulate("jitter", "bound", 1)


def test_work_is_what_a_saturated_engine_takes() -> None:
    """By hand: 512 tokens of prompt take one step's fixed part, 100 of output 100 / 512 of it and their own costs."""
    engine = preset("A100", "llama-3-8b", chunk_tokens=512)
    prompt_ms = 512 * 0.067 + 11.3
    output_ms = 100 * (11.3 / 512 + 0.03 + 8.6e-5 * (512 + 50))
    assert work_s(engine, 512, 100) == pytest.approx((prompt_ms + output_ms) / 1e3)


def test_the_bound_takes_what_fits_in_the_time_of_the_trace_smallest_first() -> None:
    scenario = find_scenario("azure-conv@3").build(1)
    most, most_tokens, blind = (chosen(scenario, order) for order in ("", "tokens", "blind"))
    works = {
        each.index: work_s(scenario.engines[0], each.prompt_tokens, each.output_tokens) for each in scenario.demands
    }
    time_s = (
        scenario.demands[-1].at
        - scenario.demands[0].at
        + 2
        + 0.1 * max(each.output_tokens for each in scenario.demands)
    )
    for found in (most, most_tokens, blind):
        assert sum(works[index] for index in found) == pytest.approx(time_s, rel=0.002)
    assert len(most) > len(most_tokens) > len(blind)
    assert max(works[index] for index in most) <= min(works[index] for index in works.keys() - most)
    tokens = [
        sum(each.prompt_tokens + each.output_tokens for each in scenario.demands if each.index in found)
        for found in (most_tokens, most, blind)
    ]
    assert tokens == sorted(tokens, reverse=True)


def test_the_bound_of_twice_the_engines_serves_twice_the_work() -> None:
    one, two = (chosen(find_scenario(name).build(1), "blind") for name in ("azure-conv@6", "azure-conv@6/2"))
    assert len(two) == pytest.approx(2 * len(one), rel=0.05)


def test_least_tokens_sends_to_the_engine_with_the_fewest_to_go() -> None:
    demands = [
        replace(demand(), index=index, prompt_tokens=tokens) for index, tokens in enumerate((3000, 100, 100, 100))
    ]
    play = Play(
        lambda replicas, clients, _: LeastTokens(replicas, clients),
        [*demands, *many(1, at=0.001, patience_s=0.002)],
        replicas=2,
    )
    play.clock.run(until=0.0005)
    assert play.running() == [1, 3]
    assert play.endings()[:4] == [Ending.ANSWERED] * 4


def test_every_baseline_is_a_policy_of_its_own() -> None:
    assert set(BASELINES) == {"cap", "static", "gradient2", "llm-d", "smg", "bound", "least-tokens", "hashed"}
