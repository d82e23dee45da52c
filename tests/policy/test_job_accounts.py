"""Room for jobs: counted for each tenant and for all, and never promised twice."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.policy.job_accounts import JobAccounts, JobsConfig

CONFIG = JobsConfig(max_jobs=4, max_tenant_jobs=3, max_bytes=100, max_tenant_bytes=60, max_result_bytes=10)


def test_each_bound_is_named_when_it_binds() -> None:
    accounts = JobAccounts(CONFIG)
    assert accounts.shortage("a", 60) == ""
    assert accounts.shortage("a", 61) == "jobs.max_tenant_bytes"
    for _ in range(3):
        accounts.take("a", 20)
    assert accounts.shortage("a", 1) == "jobs.max_tenant_jobs"
    assert accounts.shortage("b", 40) == ""
    assert accounts.shortage("b", 41) == "jobs.max_bytes"
    accounts.take("b", 1)
    assert accounts.shortage("b", 1) == "jobs.max_jobs"


def test_room_comes_back_when_a_result_is_short_and_when_a_job_is_gone() -> None:
    accounts = JobAccounts(CONFIG)
    accounts.take("a", 50)
    accounts.resize("a", -45)
    assert accounts.of_tenant("a") == (1, 5)
    assert accounts.shortage("a", 55) == ""
    accounts.leave("a", 5)
    assert (accounts.of_tenant("a"), accounts.jobs, accounts.held_bytes) == ((0, 0), 0, 0)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 70), st.booleans()), max_size=40))
def test_no_bound_is_ever_passed(steps: list[tuple[str, int, bool]]) -> None:
    accounts, held = JobAccounts(CONFIG), list[tuple[str, int]]()
    for tenant, size_bytes, goes in steps:
        if goes and held:
            accounts.leave(*held.pop(0))
        elif not accounts.shortage(tenant, size_bytes):
            accounts.take(tenant, size_bytes)
            held.append((tenant, size_bytes))
        for each in "abc":
            jobs, held_bytes = accounts.of_tenant(each)
            assert (jobs, held_bytes) == (
                sum(name == each for name, _ in held),
                sum(size for name, size in held if name == each),
            )
            assert jobs <= CONFIG.max_tenant_jobs
            assert held_bytes <= CONFIG.max_tenant_bytes
        assert accounts.jobs == len(held) <= CONFIG.max_jobs
        assert accounts.held_bytes <= CONFIG.max_bytes


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_wait_s": 0.0},
        {"max_age_s": 0.0},
        {"max_offered": 0},
        {"max_tenant_jobs": 0},
        {"max_jobs": 10},
        {"max_result_bytes": 0},
        {"max_tenant_bytes": 10},
        {"max_bytes": 2**20},
    ],
)
def test_a_configuration_that_makes_no_sense_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="jobs need"):
        JobsConfig(**wrong)  # type: ignore[arg-type] # numbers of either kind
