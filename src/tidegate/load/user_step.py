"""A step of so many users, made of what a plan sends: for searches that choose their loads as they go."""

from __future__ import annotations

from dataclasses import replace

from tidegate.errors import ConfigError
from tidegate.load.phase import Kind, Phase
from tidegate.load.plan import Plan
from tidegate.load.source import Source
from tidegate.load.workloads.blend import Blend


def user_step(plan: Plan, users: int, duration_s: float) -> Phase:
    """Raises ConfigError where nothing of the plan can be asked without end."""
    source = _endless(plan)
    if source is None:
        steps = "its requests end: take one with steps, such as three-phase or rag-3k"
        raise ConfigError([f"plan {plan.name}: no users can be made of it, {steps}"])
    name = f"users-{users}"
    if isinstance(source, Blend):
        # No step repeats the words of another, so that no cache answers for the engine.
        source = replace(source, name=name)
    return Phase(name=name, kind=Kind.STEP, source=source, duration_s=duration_s, users=users)


def _endless(plan: Plan) -> Source | None:
    """That of a step, else what an open phase sends without its times."""
    for phase in plan.phases:
        if phase.users is not None and phase.kind is not Kind.SINGLE:
            return phase.source
    for phase in plan.phases:
        if isinstance(phase.source, Blend) and phase.kind is not Kind.SINGLE:
            return replace(phase.source, arrivals=None)
    return None
