"""How KV blocks are reserved: what the plugin is told, checked before the engine starts."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self, get_args

from tidegate.engines.vllm.blocks import BlockLayout
from tidegate.engines.vllm.claim import Claim

Rule = Literal["worst_case", "peak"]
Lengths = Literal["declared", "learned"]
UnknownVersion = Literal["refuse", "native"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """The rule of admission. Defaults: exact bounds are kept to, and nothing is ever preempted."""

    rule: Rule = "peak"
    """``worst_case``: the sum of all longest lengths fits. ``peak``: at no later step more blocks are expected to be
    held than there are."""
    lengths: Lengths = "declared"
    """What ``peak`` expects: each client's bound, or what answers of that bound turned out to be."""
    quantile: float = 0.5
    """Of the learned lengths. Higher: fewer preemptions, more steps."""
    guaranteed: bool | None = None
    """Also keep the pool in a state from which all can end (banker's check): no preemption, proven. None: where it was
    measured to cost nothing, with declared lengths."""
    overtakes: int = 2
    """How often one that waits may be passed; 0 to 2 (more makes the slowest slower)."""
    pause_steps: int = 4
    """A sequence without a block waits so many steps before the engine preempts; 0: none."""
    history_file: str | None = None
    """Where learned lengths outlive a restart."""
    unknown_version: UnknownVersion = "refuse"
    """On a vLLM that this scheduler was not tested with: do not start, or schedule as vLLM does and leave memory to the
    gateway's ledger."""
    log_every_steps: int = 1000
    """A line with the figures; 0: none."""

    def __post_init__(self) -> None:
        problem = _problem_in(dataclasses.asdict(self))
        if problem is not None:
            raise ValueError(problem)

    @property
    def learns(self) -> bool:
        return self.rule == "peak" and self.lengths == "learned"

    @property
    def is_guaranteed(self) -> bool:
        """Whether no preemption is possible."""
        return self.rule == "worst_case" or (not self.learns if self.guaranteed is None else self.guaranteed)

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """From JSON. Raises ValueError for an unknown key or a value that cannot be."""
        known = {field.name for field in dataclasses.fields(cls)}
        unknown = sorted(values.keys() - known)
        if unknown:
            raise ValueError(f"unknown key {unknown[0]!r}; there are {', '.join(sorted(known))}")
        return cls(**values)

    def as_json(self) -> dict[str, object]:
        """What differs from the defaults."""
        own = dataclasses.asdict(self)
        defaults = dataclasses.asdict(type(self)())
        return {name: value for name, value in own.items() if value != defaults[name]}


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """The KV memory that is shared out."""

    blocks: int
    """Without the null block, which no sequence ever gets."""
    layout: BlockLayout
    slack_tokens: int = 0
    """A step may write so many tokens more than it keeps (speculation)."""
    longest_tokens: int = 2**31
    """Prompt and output of one sequence (max_model_len)."""

    def most_blocks(self, claim: Claim) -> int:
        """What it holds at its longest; the last token's KV is never written."""
        return self._needed(claim.prompt_tokens + claim.most_output_tokens - 1)

    def next_blocks(self, claim: Claim) -> int:
        """What it holds after its next step, or at the end of its prefill."""
        return self._needed(claim.tokens)

    def _needed(self, tokens: int) -> int:
        tokens = min(self.longest_tokens, tokens + self.slack_tokens)
        block = self.layout.block_tokens
        # A sole occupant of the whole pool must not wait for ever.
        return min(self.blocks, self.layout.needed(tokens) if block is None else -(-tokens // block))


WORDS = {"rule": Rule, "lengths": Lengths, "unknown_version": UnknownVersion}
COUNTS = ("overtakes", "pause_steps", "log_every_steps")


def _problem_in(values: Mapping[str, Any]) -> str | None:
    """What JSON may hold and a reservation may not, in words."""
    for name, kind in WORDS.items():
        if values[name] not in get_args(kind):
            return f"{name} must be one of {', '.join(get_args(kind))}, not {values[name]!r}"
    for name in COUNTS:
        if isinstance(values[name], bool) or not isinstance(values[name], int) or values[name] < 0:
            return f"{name} must be a whole number of at least 0, not {values[name]!r}"
    quantile, path = values["quantile"], values["history_file"]
    if isinstance(quantile, bool) or not isinstance(quantile, int | float) or not 0 < quantile < 1:
        return f"quantile must lie between 0 and 1, not {quantile!r}"
    if values["guaranteed"] not in (None, True, False):
        return f"guaranteed must be true, false or null, not {values['guaranteed']!r}"
    if path is not None and not (isinstance(path, str) and path):
        return f"history_file must be a path, not {path!r}"
    return None
