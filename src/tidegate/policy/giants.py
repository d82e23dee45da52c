"""Prompts so long that they stall everybody beside them: held until a replica has little to do.

An engine reads a prompt in steps that it shares with all answers that are being written, so a prompt of a
second's reading makes everybody else on that replica wait for a second. A gateway cannot split a prefill, but it
can choose its moment:

    giant  ⇔  prompt × seconds per token ≥ least_s  and  prompt ≥ least_ratio × the mean prompt
    held   ⇔  no replica runs quiet_share of its sequences or less, and it was not held for hold_s yet, nor for
              hold_share of what its client would wait

By the project's calibration (§5: 12 000 tokens among 99 short ones within a second), holding until ten run takes
the cost for the others from +79 % to nothing and brings the giant after 6.5 instead of 2.4 s; "until no prefill is
pending" leaves a third of the harm, "until nothing runs" starves the giant under steady load.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tidegate.policy.replica import Replica


@dataclass(frozen=True, slots=True, kw_only=True)
class GiantsConfig:
    enabled: bool = True
    least_s: float = 0.5
    """A prompt that takes a replica this long to read is a giant."""
    least_tokens: int = 8192
    """So is one of so many tokens, while reading speeds are unknown; and none that is shorter than a quarter of it."""
    least_ratio: float = 4.0
    """A giant is at least so many times as long as the mean prompt of its model: where all are long, none is."""
    quiet_share: float = 0.04
    """Of a replica's sequences: one that runs no more is quiet (ten of vLLM's 256). One may always run."""
    hold_s: float = 8.0
    """Longest hold, beside what its class may wait anyway: it stands in nobody's way meanwhile."""
    hold_share: float = 0.8
    """Most of the time that its client would wait. From then on it goes as others do, and before them."""

    def __post_init__(self) -> None:
        if self.least_s <= 0 or self.hold_s <= 0 or self.least_tokens < 1 or self.least_ratio < 1:
            raise ValueError(f"giants need least_s > 0, hold_s > 0, least_tokens >= 1 and least_ratio >= 1: {self}")
        if not 0 <= self.quiet_share <= 1 or not 0 <= self.hold_share < 1:
            raise ValueError(f"giants need 0 <= quiet_share <= 1 and 0 <= hold_share < 1: {self}")


def is_giant(config: GiantsConfig, prompt_tokens: int, mean_tokens: float, replicas: Sequence[Replica]) -> bool:
    """Whether a prompt would stall those beside it, on the fastest of the replicas."""
    if 4 * prompt_tokens < config.least_tokens or not config.enabled:
        return False
    if prompt_tokens < config.least_ratio * mean_tokens:
        return False
    token_s = min([each.token_s for each in replicas if each.token_s > 0], default=0.0)
    return prompt_tokens * token_s >= config.least_s if token_s else prompt_tokens >= config.least_tokens


def is_quiet(config: GiantsConfig, replica: Replica) -> bool:
    """Whether so little runs there that a giant disturbs hardly anybody."""
    most = replica.config.capacity.sequences or replica.limit.value
    running = replica.in_flight + replica.foreign_sequences
    return replica.serves and running <= max(1.0, config.quiet_share * most)
