"""The right to run one attempt on one replica."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from tidegate.policy.request import NEVER
from tidegate.policy.timeouts import Key


class PermitState(StrEnum):
    RESERVED = "reserved"
    """Admitted; no byte has come back yet."""
    USED = "used"
    """The first byte has come: the engine holds KV for it."""
    ABORTING = "aborting"
    """Over for the client; the engine has not confirmed that it stopped."""
    SETTLED = "settled"


class Progress(StrEnum):
    """What a driver reports of a running attempt."""

    SENT = "sent"
    FIRST_TOKEN = "first_token"
    TOKENS = "tokens"
    """So many tokens of the answer, of all its sequences, have come so far. Told when they pass what is reserved."""
    ABORTED = "aborted"
    """The engine confirmed that an aborted attempt has stopped."""


@dataclass(slots=True)
class Permit:
    """Held from admission to the end of the stream or the confirmed abort; settled once."""

    id: int
    request_id: int
    upstream: str
    replica: str
    service_class: str
    slots: int
    sequences: int
    prompt_tokens: int
    expected_tokens: int
    """Output of one sequence that was reserved at admission."""
    pending_tokens: int
    """Prefill work on the replica at admission, this request's included; 0 when it does not stream."""
    admitted_at: float
    first_byte_by: float
    slow_after_s: float
    """A first byte that took longer counts as slow for the breaker."""
    gap_s: float
    total_by: float
    timing_key: Key
    """Under which its phases teach the timeouts."""
    generation: int = 0
    """The breaker's generation: a result that is older than the last transition is ignored."""
    probe: bool = False
    """A half-open trial of the replica."""
    state: PermitState = PermitState.RESERVED
    first_token_at: float = 0.0
    abort_by: float = 0.0
    """When an unconfirmed abort gives its slots back all the same."""
    reserved_tokens: int = 0
    """Output of one sequence that is reserved by now, if it grew; else 0."""
    pool_bytes: int = 0
    """Held in the replica's slot group, if it has one."""
    cached_tokens: int = 0
    """Of the prompt, what the replica was expected to hold already."""

    hedge_at: float = NEVER
    """If no first byte has come by then, it is time for a second attempt beside this one."""

    def is_outgrown_by(self, output_tokens: int) -> bool:
        """So many tokens, of all sequences, are more than was reserved for."""
        return output_tokens > self.sequences * (self.reserved_tokens or self.expected_tokens)
