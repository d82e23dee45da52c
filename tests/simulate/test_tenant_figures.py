from __future__ import annotations

from dataclasses import replace

import pytest

from tests.simulate.scripted_front import demand
from tidegate.simulate.scenario import Slo
from tidegate.simulate.tenant_figures import tenants
from tidegate.simulate.visit import Ending, Visit

SLO = Slo(ttft_s=2.0, tpot_s=0.1)


def visit(tenant: str, at: float, first_token_at: float | None, tokens: int = 100) -> Visit:
    found = Visit(replace(demand(at=at), tenant=tenant, prompt_tokens=tokens), 1)
    found.ending = Ending.TIMEOUT if first_token_at is None else Ending.ANSWERED
    found.first_token_at = first_token_at
    found.ended_at = 60.0 if first_token_at is None else first_token_at + 1.0
    return found


def gap(*visits: Visit) -> float | None:
    found = tenants(visits, SLO)
    assert found is not None
    worst: float | None = found["worst_gap_tokens"]
    return worst


def test_one_tenant_alone_has_no_figures() -> None:
    assert tenants([visit("a", 0.0, 1.0)], SLO) is None


def test_the_gap_is_to_the_mean_of_those_that_waited_all_through_a_window() -> None:
    busy = [visit("a", float(at), at + 2.5, 300) for at in range(8, 22)]
    starved = [visit("b", 8.0, None)]
    assert gap(*busy, *starved) == pytest.approx(10 * 300 / 2)


def test_a_tenant_that_did_not_wait_all_through_a_window_is_owed_nothing() -> None:
    busy = [visit("a", float(at), at + 2.5, 300) for at in range(8, 22)]
    assert gap(*busy, visit("b", 12.0, 25.0)) is None
    assert gap(*busy, visit("b", 8.0, 9.0), visit("b", 11.0, 21.0)) is None


def test_whoever_was_refused_and_called_again_did_not_wait_in_between() -> None:
    busy = [visit("a", float(at), at + 2.5, 300) for at in range(8, 22)]
    repeated = visit("b", 8.0, 25.0)
    repeated.calls = 2
    assert gap(*busy, repeated) is None


def test_tenants_with_enough_requests_have_figures_of_their_own() -> None:
    many = [visit("a", at / 10, at / 10 + 1.0) for at in range(50)]
    found = tenants([*many, visit("b", 0.0, 9.0, 5000)], SLO)
    assert found is not None
    assert (found["count"], found["longest_prompt_tokens"]) == (2, 5000)
    assert found["each"] == {
        "a": {"offered": 50, "in_slo_rate": 1.0, "served_tokens": 5000, "ttft_p95_s": 1.0, "e2e_p95_s": 2.0}
    }
