"""Traffic that tells the costs of an engine's step apart, for ``tidegate simulate calibrate``."""

from __future__ import annotations

from tidegate.load.phase import Kind, Phase
from tidegate.load.plan import Plan
from tidegate.load.plan_options import PlanOptions
from tidegate.load.workloads.blend import Blend
from tidegate.load.workloads.length_draws import Fixed, LogNormal
from tidegate.load.workloads.recipe import Recipe

CONTEXT_TOKENS = 2048
"""Where the target does not tell its context."""
SHARES = (128, 32, 8, 3)
"""Prompts of single requests, as parts of the context: their times against their lengths are the prefill's costs."""
SINGLE_RUNS = 24
SINGLE_OUTPUT_TOKENS = 24
SINGLE_MOST_S = 120.0
USERS = (2, 4, 8)
"""At once: times per token against their number are what a sequence costs beside a step."""
STEP_S = 40.0


def calibration(options: PlanOptions) -> Plan:
    """Singles of several lengths, then 2, 4 and 8 users with mixed lengths: nobody else may use the engine meanwhile.

    Every prompt begins with words of its own, so that no cache computes less than was asked.
    """
    return Plan(
        name="calibration",
        seed=options.seed,
        phases=(_singles(options), *(_step(users, options) for users in USERS)),
        notes={"for": "tidegate simulate calibrate RECORDS"},
    )


def _singles(options: PlanOptions) -> Phase:
    context = options.context_tokens or CONTEXT_TOKENS
    recipes = tuple(
        options.fitted(
            Recipe(label=f"single-{share}", prompt=Fixed(context // share), output=Fixed(SINGLE_OUTPUT_TOKENS))
        )
        for share in SHARES
    )
    return Phase(
        name="calibration-1",
        kind=Kind.SINGLE,
        source=Blend(name="calibration-1", recipes=recipes),
        duration_s=options.duration(SINGLE_MOST_S),
        users=1,
        count=options.runs(SINGLE_RUNS),
    )


def _step(users: int, options: PlanOptions) -> Phase:
    context = options.context_tokens or CONTEXT_TOKENS
    mixed = Recipe(
        label="mixed",
        prompt=LogNormal(context / 32, 0.9, 8, context // 3),
        output=LogNormal(32, 0.6, 4, 128),
    )
    name = f"calibration-{users}"
    return Phase(
        name=name,
        kind=Kind.STEP,
        source=Blend(name=name, recipes=(options.fitted(mixed),)),
        duration_s=options.duration(STEP_S),
        users=options.users(users),
    )
