"""A configuration completed by what the checkpoints of its engines say, so that slots are decided before a start."""

from __future__ import annotations

from pathlib import Path

from tidegate.config import Settings, slot_plans
from tidegate.config.origin import Path as KeyPath
from tidegate.config.slot_plan import fitted
from tidegate.config.started_engines import Vllm
from tidegate.errors import ConfigError
from tidegate.plan.hf_config import read_config
from tidegate.plan.layers import token_bytes
from tidegate.plan.precision import kv_bits


def settled(settings: Settings) -> Settings:
    """``bytes_per_token`` of every vLLM engine, where it is left open and can be worked out.

    Raises ConfigError for more sequences than the pool then holds, under ``slots.overcommit: fail``.
    """
    upstreams, completed = dict(settings.upstreams), set[KeyPath]()
    for alias, upstream in settings.upstreams.items():
        engine = upstream.engine
        per_token = _bytes_per_token(engine) if isinstance(engine, Vllm) and engine.bytes_per_token is None else None
        if engine is not None and per_token is not None:
            known = engine.model_copy(update={"bytes_per_token": per_token})
            upstreams[alias] = upstream.model_copy(update={"engine": known})
            completed.add(("upstreams", alias, "engine"))
    if not completed:
        return settings
    told = settings.model_copy(update={"upstreams": upstreams})
    plans = [plan for plan in slot_plans(told) if plan.path in completed and told.slots.enabled]
    lines = [line for plan in plans for line in fitted(plan, told.slots.overcommit)]
    return told.also_warns(lines)


def _bytes_per_token(engine: Vllm) -> int | None:
    """None for a checkpoint that is not at hand, or of a kind that the planner does not know: the engine will tell."""
    try:
        model = read_config(Path(engine.model) / "config.json")
        bits = kv_bits(model.kv_dtype)
    except ConfigError:
        return None
    return token_bytes(model.layers, bits, engine.tensor_parallel, engine.pipeline_parallel)
