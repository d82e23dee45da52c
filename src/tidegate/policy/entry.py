"""The checks a request passes at arrival, before anything is held for it.

Each returns a refusal or None; ``refusal`` gives their order.
"""

from __future__ import annotations

from collections.abc import Iterable

from tidegate.policy.balance.cost import RETRY, spread
from tidegate.policy.bucket import NEVER_S
from tidegate.policy.decisions import Reason, Refuse
from tidegate.policy.marks import HIGH_RISK, MarkKind, Marks
from tidegate.policy.patience import client_limit
from tidegate.policy.quota import IN_FLIGHT, Quota
from tidegate.policy.record import Record
from tidegate.policy.request import ESTIMATE_SLACK, Request
from tidegate.policy.upstream import Upstream

LEAST_RETRY_S = 0.5
MOST_RETRY_S = 60.0


def refusal(
    marked: Marks, accounts: Quota, request: Request, upstream: Upstream, output_tokens: int, now: float
) -> Refuse | None:
    """The first check that says no; ``output_tokens`` are what one sequence would have reserved."""
    never = validity(request, upstream, output_tokens)
    if never is not None:
        marked.note_over_length(request, now)
    return (
        never or marks(marked, request, now) or deadline(request, now) or quota(accounts, request, output_tokens, now)
    )


def validity(request: Request, upstream: Upstream, output_tokens: int) -> Refuse | None:
    """Never fits: 4xx now, since waiting cannot help (R8)."""
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
    if upstream.is_bounded and not upstream.ever_fits(request, output_tokens):
        return Refuse(
            Reason.POOL_TOO_SMALL,
            None,
            f"prompt + max_tokens of {request.sequences} sequence(s) exceed the whole KV memory of every replica. "
            "Lower max_tokens, n, or the prompt.",
        )
    return None


def marks(marked: Marks, request: Request, now: float) -> Refuse | None:
    """A key at risk, and a model that is set aside, go straight to the ladder; who is blocked gets nothing."""
    if not marked.on_clients:
        return None
    mark = marked.on(request, now)
    if mark is None:
        return None
    may_descend = mark.reason == HIGH_RISK or mark.kind is MarkKind.MODEL
    detail = f"This {mark.kind.value} is marked {mark.reason}: {mark.evidence}."
    return Refuse(Reason.MARKED if may_descend else Reason.BLOCKED, mark.until - now, detail)


def deadline(request: Request, now: float) -> Refuse | None:
    if now < client_limit(request):
        return None
    return Refuse(Reason.DEADLINE_PASSED, None, "The deadline had passed when the request arrived.")


def charge(accounts: Quota, record: Record, output_tokens: int, now: float) -> None:
    """Take from its tenant, and from its model, what a request reserves."""
    request = record.request
    record.charged_tokens = tokens = reservation(request, output_tokens)
    record.charged_to = request.upstream
    accounts.charge(request.tenant, request.upstream, tokens, now)


def reservation(request: Request, output_tokens: int) -> int:
    """Tokens that a request may turn out to use."""
    return request.prompts * request.prompt_tokens + request.sequences * output_tokens


def quota(accounts: Quota, request: Request, output_tokens: int, now: float) -> Refuse | None:
    """Retry-After is when the limit would let it pass, and a little later: coming earlier is no use."""
    short = accounts.shortage(request.tenant, request.upstream, reservation(request, output_tokens), now)
    if short is None:
        return None
    reason = Reason.MODEL_RATE if short.is_models else Reason.QUOTA
    whose = f"Model {request.upstream}" if short.is_models else f"Tenant {request.tenant}"
    if short.limit == IN_FLIGHT:
        return Refuse(reason, jittered(1.0, request.draw), f"{whose} has {short.most} requests open, its most.")
    detail = f"{whose} has {short.most} {short.limit.replace('_', ' ')}, and the request needs {short.wanted}"
    if short.wait_s == NEVER_S:
        return Refuse(reason, None, f"{detail}. Lower max_tokens, n, or the prompt.")
    retry_after_s = max(LEAST_RETRY_S, short.wait_s) * (1.0 + 0.2 * spread(request.draw, RETRY, 1024) / 1024)
    return Refuse(reason, retry_after_s, f"{detail}: {short.wait_s:.1f} s from now.")


def jittered(seconds: float, draw: int) -> float:
    """× 0.8–1.2, so that refused clients do not come back together (R7)."""
    factor = 0.8 + 0.4 * spread(draw, RETRY, 1024) / 1024
    return min(MOST_RETRY_S, max(LEAST_RETRY_S, seconds * factor))


def known_models(names: Iterable[str]) -> str:
    return "Known models: " + (", ".join(sorted(names)) or "none")
