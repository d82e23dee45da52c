"""Which replica gets the next request: of those whose gates are open, the one where it costs least.

    cost = (queued prefill + own prompt tokens) × seconds per token × (running + 1)

LMETRIC (2603.15202): the tokens say when this request will start, the batch says how much
everybody slows down; no weights to tune. Seconds per token make a slow replica count for what it
is; until every candidate's rate is known, all count alike. Ties go to a drawn replica.
"""

from __future__ import annotations

from collections.abc import Sequence

from tidegate.policy.decisions import Reason
from tidegate.policy.replica import Replica
from tidegate.policy.request import Request


def least_cost(
    replicas: Sequence[Replica], request: Request, output_tokens: int, now: float, avoid: str | None = None
) -> Replica | Reason:
    """The cheapest open replica, or the gate that bars the way."""
    best: Replica | None = None
    least, barred = 0.0, Reason.NO_REPLICA
    prompt_tokens, count = request.prompt_tokens, len(replicas)
    start, rated = 0, False
    if count > 1:
        start = spread(request.draw, TIE, count)
        rated = all(replica.token_s for replica in replicas)
    for step in range(start, start + count):
        replica = replicas[step % count]
        if replica.name == avoid:
            continue
        why = replica.gate(request, output_tokens, now)
        if why is None:
            price: float = (replica.pending_tokens + prompt_tokens) * (replica.in_flight + 1)
            if rated:
                price *= replica.token_s
            if best is None or price < least:
                best, least = replica, price
        elif why is not Reason.NO_REPLICA:
            barred = why
    return barred if best is None else best


TIE, FIRST, SECOND, RETRY = range(4)


def spread(draw: int, purpose: int, choices: int) -> int:
    """A number in [0, choices) from 16 of a request's 64 random bits, other bits for each purpose."""
    return (draw >> (16 * purpose) & 0xFFFF) * choices >> 16
