"""What each tenant is charged: once, and all of it is settled, refunded or still open."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.policy.machine import Events, replica_config
from tidegate.policy.decisions import Refuse
from tidegate.policy.outcomes import Outcome
from tidegate.policy.path import Path
from tidegate.policy.path_config import PathConfig
from tidegate.policy.quota import Quota, QuotaConfig


@given(st.lists(st.tuples(st.sampled_from("tu"), st.integers(0, 1000), st.none() | st.integers(0, 2000)), max_size=60))
def test_charged_is_settled_plus_refunded_plus_open_at_every_moment(steps: list[tuple[str, int, int | None]]) -> None:
    quota = Quota(QuotaConfig())
    live: dict[str, list[int]] = {"t": [], "u": []}
    settled = {"t": 0, "u": 0}
    for tenant, tokens, used in steps:
        if used is None or not live[tenant]:
            quota.charge(tenant, tokens)
            live[tenant].append(tokens)
        else:
            quota.close(tenant, live[tenant].pop(), used)
            settled[tenant] += used
        for name, account in quota.accounts.items():
            assert account.charged == account.settled + account.refunded + account.open
            assert (account.open, account.in_flight) == (sum(live[name]), len(live[name]))
            assert account.settled == settled[name]


def test_a_tenant_has_room_until_it_has_as_many_open_as_it_may() -> None:
    quota = Quota(QuotaConfig(max_in_flight=2))
    assert quota.has_room("t")
    quota.charge("t", 10)
    quota.charge("t", 0)
    assert not quota.has_room("t")
    assert quota.has_room("u")
    quota.close("t", 0, 0)
    assert quota.has_room("t")


def test_without_a_bound_there_is_always_room() -> None:
    quota = Quota(QuotaConfig())
    for _ in range(1000):
        quota.charge("t", 1)
    assert quota.has_room("t")


def test_a_bound_is_at_least_one() -> None:
    with pytest.raises(ValueError, match="max_in_flight"):
        QuotaConfig(max_in_flight=0)


ONE = PathConfig(replicas=(replica_config("a1"),))


def test_a_request_is_charged_its_prompt_and_all_its_answers_and_settled_by_what_was_used() -> None:
    events = Events(Path(ONE, 0.0))
    events.offer(prompt_tokens=100, max_tokens=50, sequences=3, tenant="t")
    account = events.path.quota.accounts["t"]
    assert (account.charged, account.open, account.in_flight) == (250, 250, 1)
    _, permit = events.live.pop()
    events.path.settle(permit, Outcome.OK, 1.0, output_tokens=70, prompt_tokens=120)
    events.path.close(1, 1.0)
    assert (account.settled, account.refunded, account.open, account.in_flight) == (190, 60, 0, 0)


def test_a_request_that_is_refused_pays_nothing() -> None:
    events = Events(Path(ONE, 0.0))
    events.observe("a1", ready=False)
    events.offer(prompt_tokens=100, max_tokens=50, tenant="t")
    events.pass_time(10.0)
    account = events.path.quota.accounts["t"]
    assert (account.charged, account.settled, account.refunded, account.in_flight) == (150, 0, 150, 0)


def test_a_request_that_never_came_to_be_charged_leaves_no_trace() -> None:
    events = Events(Path(ONE, 0.0))
    assert isinstance(events.offer(prompt_tokens=9000, prompt_exact=True, tenant="t"), Refuse)
    assert "t" not in events.path.quota.accounts


def test_one_who_leaves_the_queue_pays_nothing_and_one_who_leaves_the_answer_pays_what_came() -> None:
    events = Events(Path(ONE, 0.0))
    events.observe("a1", ready=False)
    events.offer(prompt_tokens=100, max_tokens=50, tenant="t")
    events.cancel(0)
    assert events.path.quota.accounts["t"].settled == 0
    events.observe("a1")
    events.offer(prompt_tokens=100, max_tokens=50, tenant="t")
    events.first_token(0)
    events.settle(0, Outcome.CLIENT_LEFT)
    assert events.path.quota.accounts["t"].settled == 110
