"""What each tenant is charged: once, and all of it is settled, refunded or still open."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests.policy.machine import Events, replica_config
from tidegate.policy.decisions import Admit, Reason, Refuse
from tidegate.policy.limits.per_model import ModelConfig, ModelsConfig
from tidegate.policy.outcomes import Outcome
from tidegate.policy.path import Path
from tidegate.policy.path_config import PathConfig
from tidegate.policy.quota import MOST_ACCOUNTS, Quota, QuotaConfig
from tidegate.policy.tenants import TenantConfig, TenantsConfig

TENANT, MODEL = "t", "m"


def quota_of(tenants: dict[str, TenantConfig] | None = None, model: ModelConfig | None = None, **config: int) -> Quota:
    models = ModelsConfig(named={} if model is None else {MODEL: model})
    return Quota(QuotaConfig(**config), TenantsConfig(named=tenants or {}), models)


def taken(quota: Quota, tokens: int = 0, now: float = 0.0, tenant: str = TENANT) -> str | None:
    """Charge, or name the limit that bars the way."""
    short = quota.shortage(tenant, MODEL, tokens, now)
    if short is not None:
        return short.limit
    quota.charge(tenant, MODEL, tokens, now)
    return None


class QuotaMachine(RuleBasedStateMachine):
    """Two tenants with all limits and one model with rates, under random requests, ends, reloads and time."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.config = QuotaConfig(max_in_flight=5, requests_per_minute=20, tokens_per_minute=5000)
        self.models = ModelsConfig(named={MODEL: ModelConfig(requests_per_minute=30, tokens_per_minute=8000)})
        self.tenants = TenantsConfig(named={"u": TenantConfig(tokens_per_minute=900, max_in_flight=2)})
        self.quota = Quota(self.config, self.tenants, self.models)
        self.live: list[tuple[str, int]] = []
        self.settled = 0

    @rule(tenant=st.sampled_from("tu"), tokens=st.integers(0, 3000))
    def ask(self, tenant: str, tokens: int) -> None:
        before = self.sums()
        short = self.quota.shortage(tenant, MODEL, tokens, self.now)
        assert self.sums() == before
        if short is None:
            self.quota.charge(tenant, MODEL, tokens, self.now)
            self.live.append((tenant, tokens))
        elif short.limit != "max_in_flight" and short.wait_s < 1e9:
            # Nobody else came: then what it was told is enough.
            self.now += short.wait_s + 1e-6
            later = self.quota.shortage(tenant, MODEL, tokens, self.now)
            assert later is None or later.limit == "max_in_flight"

    @precondition(lambda self: self.live)
    @rule(index=st.integers(0, 100), used=st.just(0) | st.integers(0, 4000))
    def end(self, index: int, used: int) -> None:
        tenant, tokens = self.live.pop(index % len(self.live))
        self.quota.close(tenant, MODEL, tokens, used, self.now)
        self.settled += used

    @rule(seconds=st.floats(0.0, 90.0))
    def pass_time(self, seconds: float) -> None:
        self.now += seconds

    @rule(requests=st.none() | st.integers(1, 40), tokens=st.none() | st.integers(1, 9000), known=st.booleans())
    def reload(self, requests: int | None, tokens: int | None, known: bool) -> None:
        self.config = QuotaConfig(max_in_flight=5, requests_per_minute=requests, tokens_per_minute=tokens)
        self.models = ModelsConfig(named={MODEL: ModelConfig(tokens_per_minute=tokens)} if known else {})
        self.quota.reconfigure(self.config, self.tenants, self.models)

    def sums(self) -> list[tuple[int, ...]]:
        accounts = [*self.quota.accounts.values(), *self.quota.models.values()]
        return [(each.charged, each.open, each.in_flight, each.settled, each.refunded) for each in accounts]

    @invariant()
    def charged_is_settled_and_refunded_and_open(self) -> None:
        for account in [*self.quota.accounts.values(), *self.quota.models.values()]:
            assert account.charged == account.settled + account.refunded + account.open
        for name, account in self.quota.accounts.items():
            open_tokens = [tokens for tenant, tokens in self.live if tenant == name]
            assert (account.open, account.in_flight) == (sum(open_tokens), len(open_tokens))
        view = self.quota.view()
        assert view["settled_tokens"] == self.settled
        assert view["open_tokens"] == sum(tokens for _, tokens in self.live)
        assert view["in_flight"] == len(self.live)


QuotaMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestQuotaMachine = QuotaMachine.TestCase


def test_a_tenant_has_room_until_it_has_as_many_open_as_it_may() -> None:
    quota = quota_of(max_in_flight=2)
    assert [taken(quota) for _ in range(3)] == [None, None, "max_in_flight"]
    assert taken(quota, tenant="u") is None
    quota.close(TENANT, MODEL, 0, 0, 0.0)
    assert taken(quota) is None


def test_without_a_bound_there_is_always_room() -> None:
    quota = quota_of()
    assert [taken(quota, 10**9) for _ in range(1000)] == [None] * 1000
    assert quota.rate_limits(TENANT, 0.0) is None
    assert quota.rate_limits("never seen", 0.0) is None
    assert "never seen" not in quota.accounts


def test_a_tenant_that_comes_late_for_the_first_time_is_charged_from_then_on() -> None:
    quota = quota_of(requests_per_minute=1)
    assert [taken(quota, now=5000.0), taken(quota, now=5000.0)] == [None, "requests_per_minute"]


def test_requests_of_a_minute_are_used_up_and_come_back_steadily() -> None:
    quota = quota_of(requests_per_minute=2)
    assert [taken(quota) for _ in range(3)] == [None, None, "requests_per_minute"]
    short = quota.shortage(TENANT, MODEL, 0, 0.0)
    assert short is not None
    assert (short.most, short.wanted, short.wait_s) == (2, 1, 30.0)
    left = quota.rate_limits(TENANT, 0.0)
    assert left is not None
    assert (left.requests_left, left.requests_full_s, left.tokens_limit) == (0, 60.0, 0)
    assert taken(quota, now=30.0) is None


def test_tokens_are_reserved_at_arrival_and_what_was_not_used_comes_back_at_the_end() -> None:
    quota = quota_of(tokens_per_minute=1000)
    assert [taken(quota, 600), taken(quota, 600)] == [None, "tokens_per_minute"]
    quota.close(TENANT, MODEL, 600, 200, 0.0)
    assert taken(quota, 600) is None
    quota.close(TENANT, MODEL, 600, 1400, 0.0)
    short = quota.shortage(TENANT, MODEL, 1000, 0.0)
    assert short is not None
    assert short.wait_s == pytest.approx(96.0), "used beyond what was reserved: a debt"


def test_one_that_was_not_served_does_not_count_among_the_minutes_requests() -> None:
    quota = quota_of(requests_per_minute=1)
    assert taken(quota, 10) is None
    quota.close(TENANT, MODEL, 10, 0, 0.0)
    assert taken(quota, 10) is None
    quota.close(TENANT, MODEL, 10, 3, 0.0)
    assert taken(quota, 10) == "requests_per_minute"


def test_a_refusal_by_one_limit_takes_nothing_from_another() -> None:
    quota = quota_of(requests_per_minute=10, tokens_per_minute=100)
    assert [taken(quota, 101) for _ in range(20)] == ["tokens_per_minute"] * 20
    assert taken(quota, 100) is None
    left = quota.rate_limits(TENANT, 0.0)
    assert left is not None
    assert (left.requests_limit, left.requests_left, left.requests_full_s) == (10, 9, 6.0)
    assert (left.tokens_limit, left.tokens_left, left.tokens_full_s) == (100, 0, 60.0)


def test_of_several_limits_the_one_that_bars_longest_is_named() -> None:
    quota = quota_of(max_in_flight=1, requests_per_minute=1, tokens_per_minute=100)
    assert taken(quota, 100) is None
    short = quota.shortage(TENANT, MODEL, 50, 0.0)
    assert short is not None
    assert (short.limit, short.wait_s) == ("requests_per_minute", 60.0)
    assert taken(quota, 101) == "tokens_per_minute"


def test_a_models_rate_is_shared_by_all_tenants_and_refused_by_its_own_name() -> None:
    quota = quota_of(model=ModelConfig(requests_per_minute=2), requests_per_minute=2)
    assert [taken(quota, tenant=each) for each in "tu"] == [None, None]
    short = quota.shortage("v", MODEL, 0, 0.0)
    assert short is not None
    assert (short.is_models, short.wait_s) == (True, 30.0)
    assert quota.shortage("v", "other model", 0, 0.0) is None
    quota.close("t", MODEL, 0, 0, 0.0)
    assert taken(quota, tenant="v") is None


def test_the_tenants_own_limit_is_named_when_it_bars_as_long_as_the_models() -> None:
    quota = quota_of(model=ModelConfig(requests_per_minute=1), requests_per_minute=1)
    assert taken(quota) is None
    short = quota.shortage(TENANT, MODEL, 0, 0.0)
    assert short is not None
    assert not short.is_models


def test_a_tenant_may_have_limits_of_its_own() -> None:
    tenants = {
        "big": TenantConfig(max_in_flight=9, requests_per_minute=9, tokens_per_minute=9000),
        "same": TenantConfig(weight=2.0),
    }
    quota = quota_of(tenants, max_in_flight=1, requests_per_minute=1, tokens_per_minute=1000)
    left = quota.rate_limits("big", 0.0)
    assert left is not None
    assert (left.requests_left, left.tokens_left) == (9, 9000)
    assert [taken(quota, 900, tenant="big") for _ in range(10)] == [None] * 9 + ["requests_per_minute"]
    assert [taken(quota, 0, tenant="same") for _ in range(2)] == [None, "requests_per_minute"]
    assert quota.view()["named"] == {
        "big": {"in_flight": 9, "settled_tokens": 0, "open_tokens": 8100},
        "same": {"in_flight": 1, "settled_tokens": 0, "open_tokens": 0},
    }


def test_a_models_rate_that_a_reload_brings_knows_what_runs_already() -> None:
    quota = quota_of()
    assert taken(quota, 100) is None
    quota.reconfigure(QuotaConfig(), TenantsConfig(), ModelsConfig(named={MODEL: ModelConfig(tokens_per_minute=300)}))
    assert [taken(quota, 200), taken(quota, 200)] == [None, "tokens_per_minute"]
    quota.close(TENANT, MODEL, 100, 100, 0.0)
    account = quota.models[MODEL]
    assert (account.charged, account.settled, account.open, account.in_flight) == (300, 100, 200, 1)


def test_a_reload_takes_what_was_spent_over_to_the_new_limits() -> None:
    quota = quota_of(requests_per_minute=4)
    assert [taken(quota) for _ in range(4)] == [None] * 4
    quota.reconfigure(QuotaConfig(requests_per_minute=6), TenantsConfig(), ModelsConfig())
    assert [taken(quota) for _ in range(3)] == [None, None, "requests_per_minute"]
    quota.reconfigure(QuotaConfig(), TenantsConfig(), ModelsConfig())
    assert taken(quota) is None


def test_tenants_that_hold_and_owe_nothing_are_forgotten_and_no_sum_is_lost() -> None:
    quota = quota_of(requests_per_minute=100, tokens_per_minute=10_000)
    assert taken(quota, 50, tenant="holds") is None
    for number in range(2 * MOST_ACCOUNTS):
        name, now = f"n{number}", float(number)
        assert taken(quota, 10, now=now, tenant=name) is None
        quota.close(name, MODEL, 10, 5, now)
    assert len(quota.accounts) <= MOST_ACCOUNTS + 1
    assert "holds" in quota.accounts
    assert "n0" not in quota.accounts
    view = quota.view()
    assert view["charged_tokens"] == 50 + 10 * 2 * MOST_ACCOUNTS
    assert view["settled_tokens"] == view["refunded_tokens"] == 5 * 2 * MOST_ACCOUNTS
    assert view["open_tokens"] == 50


def test_a_tenant_in_debt_is_not_forgotten() -> None:
    quota = quota_of(tokens_per_minute=100)
    assert taken(quota, 10, tenant="debtor") is None
    quota.close("debtor", MODEL, 10, 10**9, 0.0)
    for number in range(MOST_ACCOUNTS + 10):
        assert taken(quota, 1, now=1.0, tenant=f"n{number}") is None
        quota.close(f"n{number}", MODEL, 1, 0, 1.0)
    assert taken(quota, 1, now=2.0, tenant="debtor") == "tokens_per_minute"


@pytest.mark.parametrize("bound", ["max_in_flight", "requests_per_minute", "tokens_per_minute"])
def test_a_bound_is_at_least_one(bound: str) -> None:
    with pytest.raises(ValueError, match=bound):
        QuotaConfig(**{bound: 0})


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


def test_a_refusal_names_the_limit_and_says_when_it_will_do() -> None:
    events = Events(Path(replace(ONE, quota=QuotaConfig(tokens_per_minute=600)), 0.0))
    events.offer(prompt_tokens=300, max_tokens=100, tenant="t")
    refused = events.offer(prompt_tokens=300, max_tokens=100, tenant="t")
    assert isinstance(refused, Refuse)
    assert refused.reason is Reason.QUOTA
    assert refused.detail == "Tenant t has 600 tokens per minute, and the request needs 400: 20.0 s from now."
    assert refused.retry_after_s is not None
    assert 20.0 <= refused.retry_after_s <= 24.0, "coming earlier would be in vain"
    events.settle(0, Outcome.OK, output_tokens=100)
    events.pass_time(refused.retry_after_s)
    assert isinstance(events.offer(prompt_tokens=300, max_tokens=100, tenant="t"), Admit)


def test_one_that_needs_more_than_a_minutes_worth_need_not_come_back() -> None:
    events = Events(Path(replace(ONE, quota=QuotaConfig(tokens_per_minute=600)), 0.0))
    refused = events.offer(prompt_tokens=300, max_tokens=301, tenant="t")
    assert isinstance(refused, Refuse)
    assert refused.retry_after_s is None
    assert "Lower max_tokens, n, or the prompt" in refused.detail


def test_a_models_rate_has_a_reason_of_its_own() -> None:
    models = ModelsConfig(named={"a": ModelConfig(requests_per_minute=1)})
    events = Events(Path(replace(ONE, models=models), 0.0))
    assert isinstance(events.offer(max_tokens=10, tenant="t"), Admit)
    refused = events.offer(max_tokens=10, tenant="u")
    assert isinstance(refused, Refuse)
    assert refused.reason is Reason.MODEL_RATE
    assert refused.detail.startswith("Model a has 1 requests per minute")


def test_limits_are_reloaded_in_place() -> None:
    events = Events(Path(ONE, 0.0))
    assert isinstance(events.offer(max_tokens=10, tenant="t"), Admit)
    events.apply(replace(ONE, tenants=TenantsConfig(named={"t": TenantConfig(max_in_flight=1)})))
    assert isinstance(events.offer(max_tokens=10, tenant="t"), Refuse)
    assert isinstance(events.offer(max_tokens=10, tenant="u"), Admit)
