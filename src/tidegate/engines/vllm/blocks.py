"""How many KV blocks a sequence needs."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class BlockGroup:
    """Layers that share one block table (vLLM: a KV cache group)."""

    block_tokens: int
    most_blocks: int | None = None
    """A sliding window gives back what it has passed, so a sequence never holds more. None: it keeps all."""

    def __post_init__(self) -> None:
        if self.block_tokens < 1 or (self.most_blocks is not None and self.most_blocks < 1):
            raise ValueError(f"a block holds at least one token and a sequence at least one block: {self}")

    def needed(self, tokens: int) -> int:
        blocks = -(-tokens // self.block_tokens)
        return blocks if self.most_blocks is None else min(blocks, self.most_blocks)


@dataclass(frozen=True, slots=True)
class BlockLayout:
    """All groups of one engine; they take their blocks from one pool."""

    groups: tuple[BlockGroup, ...]
    block_tokens: int | None = field(init=False)
    """Size of a block where the plain arithmetic holds: one group, nothing given back early. Else None."""

    def __post_init__(self) -> None:
        if not self.groups:
            raise ValueError("an engine has at least one group of layers that keep KV")
        plain = len(self.groups) == 1 and self.groups[0].most_blocks is None
        object.__setattr__(self, "block_tokens", self.groups[0].block_tokens if plain else None)

    def needed(self, tokens: int) -> int:
        """Blocks for ``tokens`` tokens. Never falls when ``tokens`` grows."""
        return sum(group.needed(tokens) for group in self.groups)
