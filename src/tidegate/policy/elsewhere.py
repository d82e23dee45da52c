"""Whether a request may have one more attempt on another replica: a retry, or the rest of a stream that was cut.

    retry          before the first byte, after what cannot have produced output, once
    continuation   after it, where the stream's own end failed (cut, fell silent), ``most_continuations`` times

Both stay within the deadline and the retry allowance, go where the last attempt was not, and never wait, so that
they cannot deadlock. What finds no place spends nothing.
"""

from __future__ import annotations

from tidegate.policy import entry
from tidegate.policy.decisions import Reason, Refuse
from tidegate.policy.outcomes import EFFECTS, Outcome
from tidegate.policy.record import Record
from tidegate.policy.replica import Replica
from tidegate.policy.retries import RetryAllowance
from tidegate.policy.upstream import Upstream
from tidegate.policy.waiting import Waiting


class Elsewhere:
    """Owned by ``Path``, which places what is found here."""

    __slots__ = ("allowance", "waiting")

    def __init__(self, allowance: RetryAllowance, waiting: Waiting) -> None:
        self.allowance = allowance
        self.waiting = waiting

    def claim(self, record: Record, cause: Outcome, written_tokens: int) -> None:
        """Note that the one retry, or one more continuation, is asked for. From here on the request is what is left
        of it: a continued stream's prompt has grown by ``written_tokens``, of each sequence.

        Raises:
            ValueError: this request may not be tried again after ``cause``.
        """
        effect, request = EFFECTS[cause], record.request
        if written_tokens:
            # A continuation that came to nothing before its own first byte is one more.
            resumes = effect.resume or (effect.retry and record.continuations > 0)
            may = resumes and bool(record.first_token_at)
        else:
            may = effect.retry and not record.first_token_at and not record.is_retried
        if record.live_permits or not record.attempts or not may:
            raise ValueError(f"request {request.id} may not be tried again after {cause.value}")
        if not written_tokens:
            record.is_retried = True
            return
        record.continuations += 1
        request.prompt_tokens += written_tokens
        if request.max_tokens is not None:
            request.max_tokens = max(1, request.max_tokens - written_tokens)

    def find(self, record: Record, upstream: Upstream, now: float) -> tuple[Replica, int] | Refuse:
        """The replica, and the output tokens to reserve there; the allowance is spent."""
        request = record.request
        refusal = entry.deadline(request, now)
        if refusal is not None:
            return refusal
        if record.continuations > self.allowance.config.most_continuations:
            return Refuse(Reason.RETRY_ALLOWANCE)
        output_tokens = upstream.reserved_output(request)
        replica = upstream.choose(request, output_tokens, now, record.replica)
        if isinstance(replica, Replica) and self.allowance.spend(now):
            return replica, output_tokens
        reason = Reason.NO_REPLICA if isinstance(replica, Reason) else Reason.RETRY_ALLOWANCE
        return Refuse(reason, self.waiting.drain_s(record, upstream, now))
