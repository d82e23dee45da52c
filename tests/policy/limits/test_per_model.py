"""What one model may get."""

from __future__ import annotations

import pytest

from tidegate.policy.classes import ClassesConfig
from tidegate.policy.limits.per_model import ModelConfig, ModelsConfig


@pytest.mark.parametrize(("knee", "most"), [(None, None), (1, 1), (10, 8), (32, 25), (99, 79)])
def test_eight_tenths_of_the_knee_run_at_once(knee: int | None, most: int | None) -> None:
    assert ModelConfig(knee=knee).concurrency == most


def test_a_model_may_have_waits_of_its_own() -> None:
    usual = ClassesConfig()
    assert ModelConfig().classes(usual) is usual
    own = ModelConfig(max_wait_s={"long": 40.0}).classes(usual).classes
    assert own["long"].max_wait_s == 40.0
    assert own["long"].weight == usual.classes["long"].weight
    assert own["interactive"] == usual.classes["interactive"]


def test_a_model_without_limits_is_unbounded() -> None:
    chat = ModelConfig(knee=4)
    models = ModelsConfig(named={"chat": chat})
    assert models.of("chat") is chat
    assert models.of("other") == ModelConfig()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"requests_per_minute": 0}, "at least 1"),
        ({"tokens_per_minute": 0}, "at least 1"),
        ({"knee": 0}, "at least 1"),
        ({"max_wait_s": {"long": 0.0}}, "above 0 for every class"),
    ],
)
def test_bounds_and_waits_are_above_zero(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ModelConfig(**wrong)  # type: ignore[arg-type]  # a table of one field each
