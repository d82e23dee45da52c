"""One finished request as plain columns: the form in which a record travels and is kept."""

from __future__ import annotations

import msgspec

from tidegate.policy.decisions import Reason
from tidegate.policy.outcomes import Outcome
from tidegate.policy.token_source import TokenSource


class Row(msgspec.Struct, array_like=True, gc=False):
    """Times are seconds on the data process's monotonic clock; 0.0 for a moment that never came.

    A call that was answered at the edge and never became a ``Request`` (a body that is too large
    or no JSON, a missing key) has a row with no upstream, tenant or class.
    """

    id: int
    request_id: str
    route: str
    status: int
    code: str
    arrived_at: float
    closed_at: float
    body_bytes: int
    refused_in_stream: bool = False
    longest_gap_s: float = 0.0
    upstream: str = ""
    tenant: str = ""
    service_class: str = ""
    streaming: bool = False
    first_arrived_at: float = 0.0
    queued_at: float = 0.0
    admitted_at: float = 0.0
    sent_at: float = 0.0
    first_token_at: float = 0.0
    deadline_s: float | None = None
    """From arrival; None when the client set none."""
    first_byte_s: float | None = None
    """How long after arrival the client leaves without a first byte; None: it stays."""
    attempts: int = 0
    replica: str | None = None
    outcome: Outcome | None = None
    refused: Reason | None = None
    waited_for: Reason | None = None
    degraded: str | None = None
    prompt_tokens: int = 0
    output_tokens: int = 0
    max_tokens: int | None = None
    sequences: int = 0
    reserved_slots: int = 0
    predicted_wait_s: float = 0.0
    retry_after_s: float = 0.0
    repeat: bool = False
    estimated_tokens: int = 0
    """Prompt tokens as they were estimated at arrival."""
    counted_tokens: int | None = None
    """Prompt tokens as a tokenizer counted them; None: none was asked, or none answered."""
    counted_by: TokenSource = TokenSource.ESTIMATE
    """Whose tokenizer."""
    is_prompt_told: bool = False
    """``prompt_tokens`` is what the engine reported, and no longer an estimate or a count of ours."""
    cached_tokens: int = 0
    """Of the prompt, what the replica was expected to hold in its prefix cache; counted as done."""
    in_burst: bool = False
    """It came while more requests than usual did."""
    reuse: str = ""
    """``joined`` or ``replayed``: it came under the Idempotency-Key of another request and got that one's answer;
    nothing was computed or charged for it. "" for every other request."""
    original_id: str = ""
    """That other request's ``request_id``."""
    output_problem: str = ""
    """What is wrong with the answer that the client got, or was kept from; "" for nothing (docs/reasons.md)."""
    input_problem: str = ""
    """What is wrong with a request that was passed on all the same; "" for nothing."""
    continuations: int = 0
    """How often its stream went on at another replica, because the one that wrote it failed."""
    continued_from: str = ""
    """The replica that began it, where it did."""
    served_by: str = ""
    """The upstream that the ladder sent it to; "" where the model that was asked for served it."""
    is_stored: bool = False
    """Answered from the cache before any engine was asked."""

    @property
    def is_late(self) -> bool:
        """It was answered in full, but after its deadline."""
        return (
            self.outcome is Outcome.OK
            and self.deadline_s is not None
            and self.closed_at - self.arrived_at > self.deadline_s
        )
