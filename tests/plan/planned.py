"""Plans of presets, for tests."""

from __future__ import annotations

from typing import Any

from tidegate.plan.footprint import Footprint, Serving
from tidegate.plan.gpus import gpu
from tidegate.plan.known_models import known_model
from tidegate.plan.memory import MemoryPlan
from tidegate.plan.traffic import Traffic


def footprint(model: str, on: str, weight_dtype: str | None = None, **serving: Any) -> Footprint:
    found = known_model(model, weight_dtype)
    assert found is not None
    return Footprint(found, gpu(on), Serving(**serving))


def plan(model: str, on: str, *contexts: int, count: int | None = None, **serving: Any) -> MemoryPlan:
    return MemoryPlan(
        footprint(model, on, **serving),
        lambda dtype: footprint(model, on, weight_dtype=dtype, **serving),
        contexts,
        count,
    )


def traffic(*requests: tuple[int, int]) -> Traffic:
    return Traffic("here", "made up", requests, skipped=0)
