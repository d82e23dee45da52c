"""Which replica gets the next request: of those whose gates are open, the one where it costs least.

    cost = (queued prefill + own prompt tokens - cached ones) × seconds per token × (running + 1) ÷ warmth

LMETRIC (2603.15202): the tokens say when this request will start, the batch says how much
everybody slows down; no weights to tune. Seconds per token make a slow replica count for what it
is; until every candidate's rate is known, all count alike. Ties go to a drawn replica. *Warmth* is
below 1 only in a replica's slow start.

A replica that holds a part of the prompt competes even while its prefill is full, for that gate opens again
within tenths of a second. Is it the cheapest, the request waits for it: to read everything elsewhere would take
longer, and push out of another cache what somebody comes back for. One that hangs is not waited for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tidegate.policy.decisions import Reason
from tidegate.policy.replica import Replica
from tidegate.policy.request import NEVER, Request

# A look into an Enum class costs about a microsecond in Python 3.11, and this is needed for every request.
_NO_REPLICA, _PREFILL = Reason.NO_REPLICA, Reason.PREFILL


def least_cost(
    replicas: Sequence[Replica],
    request: Request,
    output_tokens: int,
    now: float,
    avoid: str | None = None,
    cached: Mapping[Replica, int] | None = None,
) -> Replica | Reason:
    """The cheapest open replica, or the gate that bars the way.

    ``cached``: tokens of the prompt that a replica need not read; None: nobody holds any of it.
    """
    best: Replica | None = None
    least, awaited, barred = 0.0, NEVER, _NO_REPLICA
    prompt_tokens, unread, rated = request.prompt_tokens, request.prompt_tokens, False
    if avoid is not None:
        replicas = [replica for replica in replicas if replica.name != avoid]
    if len(replicas) > 1:
        start = spread(request.draw, TIE, len(replicas))
        replicas = [*replicas[start:], *replicas[:start]]
        rated = 0.0 not in [replica.token_s for replica in replicas]
    for replica in replicas:
        if cached is not None:
            unread = prompt_tokens - cached.get(replica, 0)
        why = replica.gate(request, output_tokens, now, unread)
        if why is None or (why is _PREFILL and unread < prompt_tokens and replica.is_reading(now)):
            price = _price(replica, unread, rated, now)
            if why is not None:
                barred = why
                awaited = price if price < awaited else awaited
            elif best is None or price < least:
                best, least = replica, price
        elif why is not _NO_REPLICA:
            barred = why
    if best is None:
        return barred
    return best if least <= awaited else _PREFILL


def _price(replica: Replica, unread_tokens: int, rated: bool, now: float) -> float:
    price = (replica.pending_tokens + unread_tokens) * (replica.in_flight + 1) * (replica.token_s if rated else 1.0)
    return price / replica.warmth(now) if now < replica.warm_at else price


TIE, FIRST, SECOND, RETRY = range(4)


def spread(draw: int, purpose: int, choices: int) -> int:
    """A number in [0, choices) from 16 of a request's 64 random bits, other bits for each purpose."""
    return (draw >> (16 * purpose) & 0xFFFF) * choices >> 16
