"""The cost of giving one more request to a replica; the least goes.

    cost = (queued prefill + own prompt tokens) × seconds per token × (running + 1)

LMETRIC (2603.15202): the tokens say when this request will start, the batch says how much
everybody slows down; no weights to tune. Seconds per token make a slow replica count for what it
is; until every candidate's rate is known, all count alike.
"""

from __future__ import annotations


def cost(queued_prefill_tokens: int, prompt_tokens: int, running: int, token_s: float) -> float:
    return (queued_prefill_tokens + prompt_tokens) * token_s * (running + 1)


def spread(draw: int, purpose: int, choices: int) -> int:
    """A number in [0, choices) from a request's random bits, different for each purpose (SplitMix64)."""
    mixed = (draw + purpose * 0x9E3779B97F4A7C15) & 0xFFFFFFFFFFFFFFFF
    mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & 0xFFFFFFFFFFFFFFFF
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & 0xFFFFFFFFFFFFFFFF
    return (mixed ^ (mixed >> 31)) % choices
