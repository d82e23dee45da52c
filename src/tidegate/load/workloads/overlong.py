"""Prompts that do not fit into the model's context, hidden among the others (SPEC S1-60)."""

from __future__ import annotations

from tidegate.load.ask import Refusal
from tidegate.load.workloads.length_draws import Fixed, OneOf, Uniform
from tidegate.load.workloads.recipe import Recipe

OVERLONG = "over-long"
"""Their label, whatever else they are."""
REFUSAL = Refusal(
    statuses=frozenset({400, 413}),
    codes=frozenset({"context_length_exceeded", "exceeds_kv_pool", "request_too_large"}),
)
"""Each says that it is the request's length; a 5xx, a 429 or an answer to something shorter does not."""
JUST_ABOVE = (1.02, 1.10)
FAR_ABOVE = (2.0, 4.0)


def overlong(context_tokens: int, weight: float, *, is_answered: bool) -> Recipe:
    """Half of them just above the context, half far above. ``is_answered``: the target's policy truncates or routes."""
    just, far = (
        Uniform(round(context_tokens * low) + 1, round(context_tokens * high) + 1)
        for low, high in (JUST_ABOVE, FAR_ABOVE)
    )
    return Recipe(
        label=OVERLONG,
        weight=weight,
        prompt=OneOf(((1.0, just), (1.0, far))),
        output=Fixed(16),
        refusal=None if is_answered else REFUSAL,
        may_exceed=True,
    )
