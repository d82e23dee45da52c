"""One request inside a simulated engine, and what the engine tells about it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class SequenceState(Enum):
    WAITING = "waiting"
    PREFILLING = "prefilling"
    DECODING = "decoding"
    GONE = "gone"


@dataclass(slots=True)
class Sequence:
    """``output_tokens`` is what the model will say; nobody outside the engine knows it beforehand."""

    id: int
    prompt_tokens: int
    output_tokens: int
    bound_tokens: int = 0
    """Output that the client allows at most, as far as the engine reserves for it."""
    blocks: tuple[int, ...] = ()
    """Ids of the prompt's blocks, for the prefix cache."""
    state: SequenceState = SequenceState.WAITING
    prefill_tokens: int = 0
    """Tokens to compute before it can decode: the prompt, after a preemption also what it generated."""
    prefilled_tokens: int = 0
    generated_tokens: int = 0
    """Up to ``joined_step`` while it decodes."""
    joined_step: int = 0
    finish_step: int = 0
    last_token_at: float = 0.0
    """Of a sequence that was preempted."""
    worst_gap_s: float = 0.0
    """Longest silence between two tokens, up to ``joined_step`` while it decodes."""

    def tokens_at(self, step: int) -> int:
        """Tokens generated before ``step``."""
        if self.state is not SequenceState.DECODING:
            return self.generated_tokens
        return self.generated_tokens + step - self.joined_step

    def kv_tokens_at(self, step: int) -> int:
        """Tokens in the KV pool before ``step`` of a sequence that decodes."""
        return self.prefill_tokens + step - self.joined_step


class EngineEventKind(Enum):
    FIRST_TOKEN = "first_token"
    FINISHED = "finished"
    ABORTED = "aborted"
    """The engine has stopped working for a client that left; its KV is free."""
    OUT_OF_MEMORY = "out_of_memory"
    """Enough memory is free in sum, in pieces that are too small: only the contiguous baseline."""
    LOST = "lost"
    """The engine crashed under it."""
    TOO_LONG = "too_long"
    """Refused: the prompt leaves no room for a token of output."""


@dataclass(slots=True)
class EngineEvent:
    kind: EngineEventKind
    id: int
    at: float
    tokens: int = 0
    """Generated so far."""
    worst_gap_s: float = 0.0
    """Longest silence between two of its tokens."""
