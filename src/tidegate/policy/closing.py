"""What the end of an attempt or a request means: who is to blame, what was used, what is learned."""

from __future__ import annotations

from tidegate.policy.margin import Margin
from tidegate.policy.outcomes import EFFECTS, Outcome, QuotaSignal, TimingSignal
from tidegate.policy.patience import client_limit
from tidegate.policy.permit import Permit
from tidegate.policy.record import Record
from tidegate.policy.request import NEVER, Request
from tidegate.policy.timeouts import Phase, Timeouts

TIMED_OUT = {
    Outcome.FIRST_BYTE_TIMEOUT: Phase.FIRST_BYTE,
    Outcome.GAP_TIMEOUT: Phase.GAP,
    Outcome.TOTAL_TIMEOUT: Phase.TOTAL,
}

# A look into an Enum class costs about a microsecond in Python 3.11, and these are needed for every request.
_FIRST_BYTE_TIMEOUT, _REFUND = Outcome.FIRST_BYTE_TIMEOUT, QuotaSignal.REFUND


def blame(outcome: Outcome, request: Request, now: float) -> Outcome:
    """A first byte that is late only by the client's own limit is not the replica's fault (R4)."""
    if outcome is _FIRST_BYTE_TIMEOUT and now >= client_limit(request):
        return Outcome.TOTAL_TIMEOUT
    return outcome


def teach(timeouts: Timeouts, permit: Permit, outcome: Outcome, streaming: bool, now: float) -> None:
    """Feed the dynamic timeouts with an attempt that was cut short: it lasted at least this long."""
    if EFFECTS[outcome].timing is not TimingSignal.CENSORED:
        return
    seconds, phase = now - permit.admitted_at, TIMED_OUT.get(outcome)
    if phase is not None:
        at_least = permit.gap_s if phase is Phase.GAP else seconds
        timeouts.learn_at_least(permit.timing_key, phase, at_least, now, timed_out=True)
    elif permit.first_token_at == 0.0 and streaming:
        timeouts.learn_at_least(permit.timing_key, Phase.FIRST_BYTE, seconds, now, timed_out=False)


def judge_margin(margin: Margin, record: Record, now: float) -> None:
    """Whether a request that had waited reached its first byte in the client's time, and in its class's."""
    if not record.queued_at:
        return
    limit = min(client_limit(record.request), record.objective_at)
    if limit < NEVER:
        margin.record(late=now >= limit or record.outcome is Outcome.CLIENT_LEFT)


def used_tokens(record: Record) -> int:
    """Tokens the tenant pays for."""
    if record.outcome is None or not record.attempts or EFFECTS[record.outcome].quota is _REFUND:
        return 0
    return record.request.prompts * record.prompt_tokens + record.output_tokens


def went_empty(record: Record) -> bool:
    """The client got nothing, and coming back makes sense."""
    if record.first_token_at or record.degraded or record.outcome in (Outcome.OK, Outcome.CLIENT_FAULT):
        return False
    return record.refused is None or record.retry_after_s > 0
