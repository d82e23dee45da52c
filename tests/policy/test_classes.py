"""Which class a request belongs to."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tidegate.policy.classes import BATCH, INTERACTIVE, LONG, OTHER, ClassConfig, ClassesConfig, classify

CONFIG = ClassesConfig()


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
    ],
)
def test_length_decides_and_a_hint_can_step_down_but_not_up(
    prompt_tokens: int, hint: str | None, expected: str
) -> None:
    assert classify(CONFIG, prompt_tokens, hint) == expected


def test_a_class_of_ones_own_can_be_named() -> None:
    config = ClassesConfig(classes=CONFIG.classes | {"vip": ClassConfig(weight=16.0)})
    assert classify(config, 10, "vip") == "vip"


@pytest.mark.parametrize("wrong", [{"weight": 0.0}, {"max_wait_s": 0.0}, {"queue_share": 0.0}, {"queue_share": 1.1}])
def test_impossible_classes_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="a class needs"):
        ClassConfig(**wrong)


def test_the_two_classes_that_length_chooses_between_must_be_there() -> None:
    with pytest.raises(ValueError, match="long"):
        ClassesConfig(classes={INTERACTIVE: ClassConfig()})
    with pytest.raises(ValueError, match="long_threshold_tokens"):
        replace(CONFIG, long_threshold_tokens=0)


@pytest.mark.parametrize("ttft_slo_s", [0.0, -1.0])
def test_an_objective_is_a_time(ttft_slo_s: float) -> None:
    with pytest.raises(ValueError, match="a class needs ttft_slo_s > 0, or none"):
        ClassConfig(ttft_slo_s=ttft_slo_s)
