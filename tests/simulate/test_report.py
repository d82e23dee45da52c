from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from tests.simulate.scripted_front import demand
from tidegate.engines.longest_step import bucket
from tidegate.engines.presets import preset
from tidegate.simulate.figures import gap_s
from tidegate.simulate.report import SCHEMA, report
from tidegate.simulate.run import Run, simulate
from tidegate.simulate.scenario import Burst, Scenario, Slo
from tidegate.simulate.summary import medians
from tidegate.simulate.visit import Ending, Visit

SLO = Slo(ttft_s=2.0, tpot_s=0.1)
approx = partial(pytest.approx, rel=0.01)


def answered(
    at: float, ttft_s: float, *, tpot_s: float = 0.05, label: str = "chat", calls: int = 1, degraded: str | None = None
) -> Visit:
    """11 tokens, so ten gaps of ``tpot_s``."""
    visit = Visit(replace(demand(at=at), label=label), calls, Ending.ANSWERED)
    visit.first_token_at = at + ttft_s
    visit.ended_at = visit.first_token_at + 10 * tpot_s
    visit.output_tokens = 11
    visit.degraded = degraded
    return visit


def failed(at: float, ending: Ending, gave_up_after_s: float) -> Visit:
    return Visit(demand(at=at), 2, ending, at + gave_up_after_s)


def figures(*visits: Visit, burst: Burst | None = None) -> dict[str, Any]:
    scenario = Scenario(
        name="hand-made",
        engines=(preset("A100", "llama-3-8b"),),
        demands=[visit.demand for visit in visits],
        slo=SLO,
        tries=2,
        burst=burst,
    )
    run = Run(scenario, "native", 1, list(visits), preemptions=3, wall_s=0.5)
    return report(replace(run, refusals={"b": 1, "a": 2}, refused_after_s=[0.01, 0.02, 0.3]))


def test_every_field_is_defined_and_every_definition_is_a_field() -> None:
    assert figures(answered(0.0, 1.0)).keys() == SCHEMA.keys()


def test_good_means_answered_in_full_within_both_objectives() -> None:
    found = figures(
        answered(0.0, 2.0),
        answered(1.0, 2.1),
        answered(2.0, 1.0, tpot_s=0.11),
        answered(3.0, 1.0, degraded="cache"),
        failed(4.0, Ending.TIMEOUT, 15.0),
    )
    assert found["goodput_requests"] == 0.2
    assert found["degraded"] == 1


def test_goodput_in_tokens_weighs_each_request_by_prompt_and_output() -> None:
    big = answered(1.0, 3.0)
    big.demand = replace(big.demand, prompt_tokens=320)
    assert figures(answered(0.0, 1.0), big)["goodput_tokens"] == pytest.approx(110 / 440)


def test_errors_are_counted_by_how_the_last_call_ended() -> None:
    endings = [Ending.TIMEOUT, Ending.TIMEOUT, Ending.REFUSED, Ending.ENGINE]
    found = figures(answered(0.0, 1.0), *(failed(1.0, ending, 9.0) for ending in endings))
    assert found["errors"] == {"timeout": 2, "refused": 1, "engine": 1, "total": 4, "rate": 0.8}


def test_an_answer_on_a_later_call_is_no_error_and_counted_apart() -> None:
    found = figures(answered(0.0, 9.0, calls=2), answered(1.0, 1.0))
    assert found["retried_ok"] == 1
    assert found["errors"]["total"] == 0
    assert found["ttft_s"]["p99"] == 9.0


def test_quantiles_are_of_answered_requests_and_are_values_that_occurred() -> None:
    visits = [answered(float(index), index / 100) for index in range(1, 101)]
    found = figures(*visits, failed(0.0, Ending.TIMEOUT, 500.0))
    assert found["ttft_s"] == {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99}
    assert found["jitter_ratio"] == pytest.approx((0.99 + 0.5) / (0.5 + 0.5), abs=1e-3)


def test_the_standard_deviation_holds_unanswered_requests_at_the_time_they_gave_up() -> None:
    found = figures(answered(1.0, 1.0), failed(15.0, Ending.REFUSED, 9.0))
    assert found["p95_std_s"] == pytest.approx((9.0 - 1.0) / 2)
    assert figures(answered(1.0, 1.0))["p95_std_s"] is None


def test_recovery_ends_with_the_last_bad_second_after_the_step() -> None:
    burst = Burst(10.0, 20.0)
    calm = [answered(float(at), 0.1) for at in range(40)]
    assert figures(*calm, burst=burst)["recovery_s"] == 0.0
    assert figures(*calm, answered(5.5, 9.0), burst=burst)["recovery_s"] == 0.0
    assert figures(*calm, answered(25.5, 9.0), burst=burst)["recovery_s"] == 6.0
    assert figures(*calm, failed(31.5, Ending.REFUSED, 0.1), burst=burst)["recovery_s"] == 12.0
    assert figures(*calm)["recovery_s"] is None


def test_classes_are_reported_apart() -> None:
    found = figures(answered(0.0, 1.0, label="short"), answered(0.0, 5.0, label="long"))
    assert found["classes"] == {
        "long": {
            "offered": 1,
            "in_slo_rate": 0.0,
            "in_slo_tokens": 0.0,
            "served_rate": 1.0,
            "ttft_p95_s": 5.0,
            "e2e_p95_s": 5.5,
            "p95_std_s": None,
        },
        "short": {
            "offered": 1,
            "in_slo_rate": 1.0,
            "in_slo_tokens": 1.0,
            "served_rate": 1.0,
            "ttft_p95_s": 1.0,
            "e2e_p95_s": 1.5,
            "p95_std_s": None,
        },
    }


def test_prompts_are_reported_by_length_in_order_and_only_where_there_are_some() -> None:
    visits = [answered(0.0, 1.0), answered(1.0, 9.0), failed(2.0, Ending.REFUSED, 0.0), answered(3.0, 1.0)]
    for visit, prompt_tokens in zip(visits, (512, 513, 600, 9000), strict=True):
        visit.demand = replace(visit.demand, prompt_tokens=prompt_tokens)
    assert figures(*visits)["prompt_lengths"] == {
        "<=512": {"offered": 1, "in_slo_rate": 1.0, "served_rate": 1.0, "ttft_p95_s": 1.0},
        "<=1024": {"offered": 2, "in_slo_rate": 0.0, "served_rate": 0.5, "ttft_p95_s": 9.0},
        ">4096": {"offered": 1, "in_slo_rate": 1.0, "served_rate": 1.0, "ttft_p95_s": 1.0},
    }


def test_a_request_with_an_objective_of_its_own_is_held_to_that() -> None:
    relaxed, strict = answered(0.0, 9.0), answered(1.0, 1.0)
    relaxed.demand = replace(relaxed.demand, ttft_slo_s=10.0)
    strict.demand = replace(strict.demand, ttft_slo_s=0.5)
    assert figures(relaxed)["goodput_requests"] == 1.0
    assert figures(strict)["goodput_requests"] == 0.0


def test_an_answer_that_comes_when_it_is_worthless_is_not_good() -> None:
    visit = answered(0.0, 1.0)
    visit.demand = replace(visit.demand, worthless_after_s=1.4)
    assert figures(visit)["goodput_requests"] == 0.0


def test_how_long_refusals_took_is_told_and_so_is_throughput() -> None:
    visits = [answered(0.0, 1.0), answered(9.0, 0.5)]
    found = figures(*visits)
    assert found["refused_after_s"] == {"p50": 0.02, "p90": 0.3, "p95": 0.3, "p99": 0.3}
    assert found["throughput_per_s"] == pytest.approx(0.2)
    assert (found["e2e_s"]["mean"], found["e2e_s"]["std"]) == (1.25, 0.25)


def test_nothing_answered_gives_nulls_and_not_a_crash() -> None:
    found = figures(failed(0.0, Ending.TIMEOUT, 15.0))
    assert found["ttft_s"]["p50"] is None
    assert found["jitter_ratio"] is None
    assert found["classes"]["chat"]["ttft_p95_s"] is None


def test_medians_are_taken_field_by_field_and_null_where_no_run_has_a_value() -> None:
    reports: list[dict[str, Any]] = [
        {"seed": seed, "policy": "native", "simulated": True, "notes": {"x": 1}, "a": {"b": value}, "c": None}
        for seed, value in ((1, 5.0), (2, None), (3, 1.0))
    ]
    reports[0]["refusals"], reports[1]["refusals"], reports[2]["refusals"] = {}, {"late": 4}, {"late": 2}
    found = medians(reports)
    assert found == {
        "policy": "native",
        "simulated": True,
        "a": {"b": 3.0},
        "c": None,
        "refusals": {"late": 3},
        "seeds": [1, 2, 3],
    }


def test_gaps_are_counted_by_tokens_and_their_quantiles_are_right_to_one_percent() -> None:
    gaps = Counter({bucket(round(20e9)): 980, bucket(round(60e9)): 15, bucket(round(200e9)): 5})
    found = gap_s(gaps)
    assert found == {
        "p50": approx(0.02),
        "p90": approx(0.02),
        "p95": approx(0.02),
        "p99": approx(0.06),
        "max": approx(0.2),
    }
    assert set(gap_s({}).values()) == {None}


def test_every_token_but_the_first_of_a_stream_has_a_gap() -> None:
    run = simulate("silence-then-200", "native", 1)
    tokens = sum(visit.output_tokens - 1 for visit in run.visits if visit.is_answered)
    assert sum(run.gaps.values()) >= tokens
    alone = simulate("video-12@1", "native", 1)
    assert sum(alone.gaps.values()) == sum(visit.output_tokens - 1 for visit in alone.visits)
    assert report(alone)["gap_s"]["max"] == pytest.approx(0.004, rel=0.01)
