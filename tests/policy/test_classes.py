"""Which class a request belongs to."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tidegate.policy.class_rules import ClassRule
from tidegate.policy.classes import BATCH, INTERACTIVE, LONG, OTHER, ClassConfig, ClassesConfig, classify
from tidegate.policy.request import Request

CONFIG = ClassesConfig()


def request(hint: str | None = None, max_tokens: int | None = None, tenant: str = "default") -> Request:
    return Request(1, "chat", 0.0, 0, max_tokens=max_tokens, class_hint=hint, tenant=tenant)


@pytest.mark.parametrize(
    ("prompt_tokens", "hint", "expected"),
    [
        (1024, None, INTERACTIVE),
        (1025, None, LONG),
        (1025, INTERACTIVE, LONG),
        (10, INTERACTIVE, INTERACTIVE),
        (10, LONG, LONG),
        (10, BATCH, BATCH),
        (5000, BATCH, BATCH),
        (5000, OTHER, OTHER),
        (5000, "vip", LONG),
        (10, "vip", INTERACTIVE),
        (10, "sheddable", BATCH),
        (10, "sheddable_plus", BATCH),
        (10, "critical", INTERACTIVE),
        (5000, "critical_plus", LONG),
    ],
)
def test_length_decides_and_a_hint_can_step_down_but_not_up(
    prompt_tokens: int, hint: str | None, expected: str
) -> None:
    assert classify(CONFIG, request(hint), prompt_tokens, is_burst=False) == expected


def test_a_class_of_ones_own_can_be_named_and_may_bear_the_name_of_a_criticality() -> None:
    config = ClassesConfig(classes=CONFIG.classes | {"vip": ClassConfig(weight=16.0), "critical": ClassConfig()})
    assert classify(config, request("vip"), 10, is_burst=False) == "vip"
    assert classify(config, request("critical"), 10, is_burst=False) == "critical"


def test_a_criticality_whose_class_is_gone_says_nothing() -> None:
    config = ClassesConfig(classes={name: CONFIG.classes[name] for name in (INTERACTIVE, LONG)})
    assert classify(config, request("sheddable"), 10, is_burst=False) == INTERACTIVE


def test_length_may_count_only_while_a_burst_lasts() -> None:
    config = ClassesConfig(classify="on_burst")
    assert classify(config, request(), 5000, is_burst=False) == INTERACTIVE
    assert classify(config, request(), 5000, is_burst=True) == LONG
    assert classify(config, request(BATCH), 5000, is_burst=False) == BATCH


def test_the_threshold_may_count_the_wanted_answer_too() -> None:
    config = ClassesConfig(long_counts="total")
    assert classify(config, request(max_tokens=500), 600, is_burst=False) == LONG
    assert classify(config, request(max_tokens=400), 600, is_burst=False) == INTERACTIVE
    assert classify(config, request(), 600, is_burst=False) == INTERACTIVE
    assert classify(CONFIG, request(max_tokens=5000), 600, is_burst=False) == INTERACTIVE


def test_the_first_rule_that_matches_decides_before_any_hint() -> None:
    rules = (
        ClassRule(service_class=OTHER, tenant="nightly", min_prompt_tokens=100),
        ClassRule(service_class=BATCH, tenant="nightly"),
        ClassRule(service_class=INTERACTIVE, tenant="gold"),
    )
    config = ClassesConfig(rules=rules)
    assert classify(config, request(tenant="nightly"), 100, is_burst=False) == OTHER
    assert classify(config, request(INTERACTIVE, tenant="nightly"), 99, is_burst=False) == BATCH
    assert classify(config, request(BATCH, tenant="gold"), 9000, is_burst=False) == INTERACTIVE
    assert classify(config, request(tenant="else"), 9000, is_burst=False) == LONG


def test_a_driver_reads_only_the_headers_that_rules_name() -> None:
    rules = tuple(ClassRule(service_class=BATCH, header=name) for name in ("X-Team", "x-app", "x-team"))
    assert ClassesConfig(rules=(*rules, ClassRule(service_class=BATCH, tenant="t"))).headers == ("x-app", "x-team")
    assert CONFIG.headers == ()


@pytest.mark.parametrize(
    "wrong",
    [
        {"weight": 0.0},
        {"max_wait_s": 0.0},
        {"queue_share": 0.0},
        {"queue_share": 1.1},
        {"max_share": 0.0},
        {"max_share": 1.1},
        {"floor": -0.1},
        {"floor": 0.6, "max_share": 0.5},
    ],
)
def test_impossible_classes_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="a class needs"):
        ClassConfig(**wrong)  # type: ignore[arg-type]  # a table of numbers; yields is not among them


def test_the_two_classes_that_length_chooses_between_must_be_there() -> None:
    with pytest.raises(ValueError, match="long"):
        ClassesConfig(classes={INTERACTIVE: ClassConfig()})
    with pytest.raises(ValueError, match="long_threshold_tokens"):
        replace(CONFIG, long_threshold_tokens=0)


def test_rules_name_classes_that_exist_and_floors_leave_room_for_each_other() -> None:
    with pytest.raises(ValueError, match=r"class rules name \['vip'\]"):
        ClassesConfig(rules=(ClassRule(service_class="vip", tenant="t"),))
    with pytest.raises(ValueError, match="floors"):
        ClassesConfig(classes={INTERACTIVE: ClassConfig(floor=0.6), LONG: ClassConfig(floor=0.6)})


@pytest.mark.parametrize(
    "objective", [{"ttft_slo_s": 0.0}, {"ttft_slo_s": -1.0}, {"tpot_slo_s": 0.0}, {"tpot_slo_s": -1.0}]
)
def test_an_objective_is_a_time(objective: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="a class needs ttft_slo_s > 0 and tpot_slo_s > 0, or none"):
        ClassConfig(**objective)  # type: ignore[arg-type]  # parts of the configuration by name, one type each
