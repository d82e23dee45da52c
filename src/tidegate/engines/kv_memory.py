"""One look at an engine's KV memory, whatever allocator it has; three metrics come from it (SPEC C19).

external fragmentation = 1 - largest free block ÷ free      what is free and still cannot be given out
internal waste         = 1 - filled ÷ allocated             what is given out and holds nothing
pool pressure          = allocated ÷ total                  what is given out
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class KvMemory:
    """In tokens."""

    total: int
    allocated: int
    """Given to sequences: blocks, or regions."""
    filled: int
    """Tokens whose keys and values are really there."""
    largest_free: int
    """The largest piece that one sequence could get."""

    @property
    def free(self) -> int:
        return self.total - self.allocated

    @property
    def external_fragmentation(self) -> float:
        return 1 - self.largest_free / self.free if self.free else 0.0

    @property
    def internal_waste(self) -> float:
        return 1 - self.filled / self.allocated if self.allocated else 0.0

    @property
    def pool_pressure(self) -> float:
        return self.allocated / self.total
