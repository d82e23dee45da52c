"""The checks a request passes at arrival, before anything is held for it.

Each takes (path, record, upstream, now) and returns a refusal or None; ``Path.ENTRY`` gives their order.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from tidegate.policy.balance.cost import RETRY, spread
from tidegate.policy.decisions import Reason, Refuse
from tidegate.policy.marks import MarkKind, Marks
from tidegate.policy.patience import client_limit
from tidegate.policy.quota import Quota
from tidegate.policy.record import Record
from tidegate.policy.request import ESTIMATE_SLACK, Request
from tidegate.policy.upstream import Upstream

LEAST_RETRY_S = 0.5
MOST_RETRY_S = 60.0


class State(Protocol):
    """What the checks look at."""

    marks: Marks
    quota: Quota

    def output_tokens(self, request: Request, upstream: Upstream) -> int: ...


def validity(state: State, record: Record, upstream: Upstream, _now: float) -> Refuse | None:
    """Never fits: 4xx now, since waiting cannot help (R8)."""
    request = record.request
    context = upstream.context_tokens
    least = request.prompt_tokens if request.prompt_exact else request.prompt_tokens / ESTIMATE_SLACK
    # One token of output at least, where there is any: embeddings have none.
    if context is not None and least + (request.max_tokens != 0) > context:
        about = "" if request.prompt_exact else "about "
        return Refuse(
            Reason.NEVER_FITS,
            None,
            f"This model's maximum context length is {context} tokens, and the prompt has {about}"
            f"{request.prompt_tokens}. Shorten the prompt.",
        )
    if upstream.is_bounded and not upstream.ever_fits(request, state.output_tokens(request, upstream)):
        return Refuse(
            Reason.POOL_TOO_SMALL,
            None,
            f"prompt + max_tokens of {request.sequences} sequence(s) exceed the whole KV memory of every replica. "
            "Lower max_tokens, n, or the prompt.",
        )
    return None


def marks(state: State, record: Record, _upstream: Upstream, now: float) -> Refuse | None:
    """A key under a mark goes straight to the ladder."""
    if not len(state.marks):
        return None
    request = record.request
    for kind, key in (
        (MarkKind.SESSION, request.session),
        (MarkKind.TENANT, request.tenant),
        (MarkKind.SOURCE, request.source),
        (MarkKind.MODEL, request.upstream),
    ):
        mark = state.marks.find(kind, key, now)
        if mark is not None:
            detail = f"This {kind.value} is marked {mark.reason}: {mark.evidence}."
            return Refuse(Reason.MARKED, mark.until - now, detail)
    return None


def deadline(_state: State, record: Record, _upstream: Upstream, now: float) -> Refuse | None:
    if now < client_limit(record.request):
        return None
    return Refuse(Reason.DEADLINE_PASSED, None, "The deadline had passed when the request arrived.")


def quota(state: State, record: Record, _upstream: Upstream, _now: float) -> Refuse | None:
    request = record.request
    if state.quota.has_room(request.tenant):
        return None
    detail = f"Tenant {request.tenant} has {state.quota.config.max_in_flight} requests open, its most."
    return Refuse(Reason.QUOTA, jittered(1.0, request.draw), detail)


def jittered(seconds: float, draw: int) -> float:
    """× 0.8–1.2, so that refused clients do not come back together (R7)."""
    factor = 0.8 + 0.4 * spread(draw, RETRY, 1024) / 1024
    return min(MOST_RETRY_S, max(LEAST_RETRY_S, seconds * factor))


def known_models(names: Iterable[str]) -> str:
    return "Known models: " + (", ".join(sorted(names)) or "none")
