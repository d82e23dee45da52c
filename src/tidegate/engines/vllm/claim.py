"""What the ledger knows of one sequence."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True, kw_only=True)
class Claim:
    """A sequence that wants KV blocks, or holds some. The scheduler keeps the counts true."""

    id: str
    prompt_tokens: int
    most_output_tokens: int
    """The bound that its client declared; at least 1."""
    tokens: int
    """Prompt and output so far, whether their KV is computed or not."""
    output_tokens: int = 0
    held_blocks: int = 0
    """In its block table, shared ones too."""
    longest_blocks: int = 0
    """In its block table at its longest; the ledger works it out once."""
    is_preempted: bool = False
    """It ran, lost its blocks, and somebody waits in the middle of its answer."""

    @property
    def most_left_tokens(self) -> int:
        """The longest that it can still go on."""
        return max(1, self.most_output_tokens - self.output_tokens)
