"""Three models on one budget against a pool each: what lending gains, what it keeps, and what it does not reach."""

from __future__ import annotations

from statistics import median
from typing import Any

import pytest

from tidegate.simulate.report import report
from tidegate.simulate.run import simulate
from tidegate.simulate.scenarios import find_scenario
from tidegate.simulate.scenarios.three_models import BUDGET_BYTES, PARTS, RATES_PER_S

MODELS = ("images", "text", "code")


PATIENT = tuple(f"tidegate:{words}classes.long.max_wait_s=10" for words in ("", "isolated+"))
"""Long prompts wait as long as others do, or isolated ones would be refused before their tail shows."""


@pytest.fixture(scope="module")
def reports() -> dict[str, dict[str, Any]]:
    policies = ("native", "native:contiguous", "tidegate:isolated", "tidegate", *PATIENT)
    return {policy: report(simulate("three-models", policy, 1)) for policy in policies}


def test_the_surge_is_of_images_and_code_comes_back_in_its_second_half() -> None:
    scenario = find_scenario("three-models").build(1)
    assert {demand.model for demand in scenario.demands} == set(MODELS)

    def rate(model: str, start_s: float, end_s: float) -> float:
        return sum(demand.model == model and start_s <= demand.at < end_s for demand in scenario.demands) / (
            end_s - start_s
        )

    assert rate("images", 60, 180) == pytest.approx(2.5 * RATES_PER_S["images"], rel=0.1)
    assert rate("images", 180, 240) == pytest.approx(RATES_PER_S["images"], rel=0.25)
    assert rate("code", 120, 180) == pytest.approx(2 * RATES_PER_S["code"], rel=0.35)
    assert rate("text", 0, 240) == pytest.approx(RATES_PER_S["text"], rel=0.1)


def test_lending_fills_slots_that_isolated_pools_leave_empty(reports: dict[str, dict[str, Any]]) -> None:
    """Slots held ÷ slots during the surge; S0-74 claims 62 % → 81 %."""
    isolated, shared = (reports[policy]["pool"]["reserved_share"] for policy in ("tidegate:isolated", "tidegate"))
    assert isolated < 0.72
    assert shared > 0.81
    assert reports["tidegate"]["pool"]["borrowed_share"] > 0.1
    assert reports["tidegate:isolated"]["pool"]["borrowed_share"] == 0


def test_more_requests_are_in_their_slo_and_no_model_pays_for_another(reports: dict[str, dict[str, Any]]) -> None:
    isolated, shared = reports["tidegate:isolated"]["classes"], reports["tidegate"]["classes"]
    assert shared["images"]["in_slo_rate"] > isolated["images"]["in_slo_rate"] + 0.3
    assert all(shared[model]["in_slo_rate"] >= isolated[model]["in_slo_rate"] for model in MODELS)
    assert (shared["text"]["in_slo_rate"], shared["code"]["in_slo_rate"]) == (1.0, 1.0)
    assert reports["tidegate"]["errors"]["rate"] <= reports["tidegate:isolated"]["errors"]["rate"]


def test_no_group_waits_under_its_floor_and_no_engine_preempts(reports: dict[str, dict[str, Any]]) -> None:
    for policy in ("tidegate:isolated", "tidegate"):
        assert [figures["floor_wait_s"] for figures in reports[policy]["pool"]["models"].values()] == [0.0] * 3
        assert reports[policy]["preemptions"] == 0
    assert reports["native"]["preemptions"] > 50


def test_the_engines_together_never_allocate_more_than_there_is(reports: dict[str, dict[str, Any]]) -> None:
    assert 0.6 < reports["tidegate"]["pool"]["most_allocated_share"] <= 1.0
    scenario = find_scenario("three-models").build(1)
    assert scenario.pool is not None
    assert sum(part.floor_share for part in PARTS) == pytest.approx(1.0)
    assert scenario.pool.budget_bytes == BUDGET_BYTES


def test_the_tail_of_the_model_without_a_surge_is_steady(reports: dict[str, dict[str, Any]]) -> None:
    """Below 50 ms as S0-74 claims for text only. Six code requests in a window of 10 s already vary by 100 ms with
    nothing else going on, and a surge above what the card holds has no steady tail."""
    shared, isolated = (reports[policy]["classes"] for policy in PATIENT)
    assert shared["text"]["p95_std_s"] < 0.05
    assert shared["images"]["p95_std_s"] < isolated["images"]["p95_std_s"] / 3


def test_without_paging_memory_is_torn_and_requests_fail_beside_it(reports: dict[str, dict[str, Any]]) -> None:
    torn, paged = reports["native:contiguous"], reports["native"]
    assert torn["memory"]["external_fragmentation"] > 0.2
    assert torn["memory"]["internal_waste"] > 0.15
    assert torn["errors"]["engine"] > 50
    assert paged["memory"]["external_fragmentation"] == 0.0
    assert paged["memory"]["internal_waste"] < 0.05
    assert paged["errors"]["engine"] == 0


@pytest.mark.slow
def test_the_gain_is_no_luck_of_one_seed() -> None:
    shares = {
        policy: median(report(simulate("three-models", policy, seed))["pool"]["reserved_share"] for seed in range(1, 6))
        for policy in ("tidegate:isolated", "tidegate")
    }
    assert shares["tidegate:isolated"] < 0.70
    assert shares["tidegate"] > 0.81
