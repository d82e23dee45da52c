"""The same invariants where classes have shares and floors, tenants and models have limits, and rules choose."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from hypothesis import settings
from hypothesis.stateful import invariant

from tests.policy.test_path_machine import CONFIG, PathMachine
from tidegate.policy.class_rules import ClassRule
from tidegate.policy.classes import ClassConfig, ClassesConfig
from tidegate.policy.limits.per_model import ModelConfig, ModelsConfig
from tidegate.policy.quota import QuotaConfig
from tidegate.policy.tenants import TenantConfig, TenantsConfig

CLASSES = {
    **ClassesConfig().classes,
    "interactive": ClassConfig(weight=4.0, floor=0.3),
    "long": ClassConfig(max_share=0.5, max_wait_s=3.0),
    "batch": ClassConfig(max_share=0.3, yields=True),
}


class ShapedMachine(PathMachine):
    base = replace(
        CONFIG,
        classes=ClassesConfig(
            classify="on_burst", classes=CLASSES, rules=(ClassRule(service_class="long", tenant="t2", model="b"),)
        ),
        quota=QuotaConfig(max_in_flight=12, requests_per_minute=60_000, tokens_per_minute=10**8),
        tenants=TenantsConfig(named={"t2": TenantConfig(weight=3.0, max_in_flight=6)}),
        models=ModelsConfig(
            named={"a": ModelConfig(knee=6, max_wait_s={"interactive": 5.0}), "b": ModelConfig(tokens_per_minute=10**8)}
        ),
    )

    @invariant()
    def nobody_has_more_open_than_it_may(self) -> None:
        accounts = self.events.path.quota.accounts
        assert all(
            account.in_flight <= most for name, most in (("t1", 12), ("t2", 6)) if (account := accounts.get(name))
        )

    @invariant()
    def models_and_tenants_are_charged_alike(self) -> None:
        quota = self.events.path.quota
        for account in quota.models.values():
            assert account.charged == account.settled + account.refunded + account.open
        view = quota.view()
        parts = [cast(int, view[f"{name}_tokens"]) for name in ("settled", "refunded", "open")]
        assert view["charged_tokens"] == sum(parts)


ShapedMachine.TestCase.settings = settings(max_examples=100, stateful_step_count=60, deadline=None)
TestShapedMachine = ShapedMachine.TestCase
