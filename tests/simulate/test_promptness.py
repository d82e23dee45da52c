from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.simulate.test_report import SLO, answered, failed
from tidegate.engines.presets import preset
from tidegate.simulate.promptness import chains, done_in_time
from tidegate.simulate.scenario import Burst, Scenario
from tidegate.simulate.visit import Ending, Visit


def scenario_of(*visits: Visit, burst: Burst | None = None, limit_s: float | None = 1.6) -> Scenario:
    return Scenario(
        name="hand-made",
        engines=(preset("A100", "llama-3-8b"),),
        demands=[visit.demand for visit in visits],
        slo=SLO,
        tries=2,
        burst=burst,
        done_within_s=limit_s,
    )


def link(visit: Visit, chain: int, *, then: bool = False) -> Visit:
    following = replace(visit.demand, index=99) if then else None
    visit.demand = replace(visit.demand, chain=chain, then=following)
    return visit


def test_in_time_is_the_whole_answer_degraded_or_not() -> None:
    visits = [
        answered(0.0, 1.0),
        answered(10.0, 1.0, degraded="light_model"),
        answered(11.0, 1.2),
        failed(12.0, Ending.REFUSED, 0.1),
    ]
    scenario = scenario_of(*visits, burst=Burst(10.0, 20.0))
    assert done_in_time(visits, scenario) == {"limit_s": 1.6, "rate": 0.5, "burst_rate": 0.333333, "p99_s": None}
    assert done_in_time(visits[:3], scenario)["p99_s"] == 1.7  # type: ignore[index]  # there is a limit


def test_nothing_is_said_without_a_limit_and_only_one_thing_with_chains() -> None:
    visit = link(answered(0.0, 1.0), 0)
    assert done_in_time([visit], scenario_of(visit, limit_s=None)) is None
    assert chains([visit], scenario_of(visit, limit_s=None)) is None
    assert done_in_time([visit], scenario_of(visit)) is None
    alone = answered(0.0, 1.0)
    assert chains([alone], scenario_of(alone)) is None


def test_a_chain_is_done_when_its_last_call_is_and_broken_by_any_that_was_not() -> None:
    visits = [
        link(answered(0.0, 0.1, tpot_s=0.02), 0, then=True),
        link(answered(0.5, 0.1, tpot_s=0.02, degraded="light_model"), 0),
        link(answered(1.0, 0.1), 1, then=True),
        link(failed(2.0, Ending.TIMEOUT, 4.0), 1),
        link(answered(3.0, 0.1), 2, then=True),
    ]
    found: Any = chains(visits, scenario_of(*visits))
    assert (found["offered"], found["finished_rate"], found["degraded_rate"]) == (3, 0.333333, 1.0)
    assert (found["rate"], found["burst_rate"], found["p99_s"]) == (0.333333, None, None)
    assert chains(visits[:2], scenario_of(*visits))["p99_s"] == 0.8  # type: ignore[index]  # there is a limit


def test_a_burst_without_a_call_has_no_longest_time() -> None:
    visit = answered(0.0, 1.0)
    found: Any = done_in_time([visit], scenario_of(visit, burst=Burst(10.0, 20.0)))
    assert (found["burst_rate"], found["p99_s"]) == (0.0, None)
