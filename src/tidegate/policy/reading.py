"""What an engine reports about itself, and what a replica is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Reading:
    """One look at a replica. ``None`` means that this engine does not tell."""

    at: float
    """When the engine was asked, on the driver's clock."""
    ready: bool = True
    running: int | None = None
    """Sequences in the running batch."""
    waiting: int | None = None
    """Requests in the engine's own queue."""
    kv_used_tokens: int | None = None
    preemptions: int | None = None
    """Total since the engine started."""
    prefix_asked_tokens: int | None = None
    """Prompt tokens looked up in the engine's prefix cache; total since it started."""
    prefix_found_tokens: int | None = None
    """Of these, found there."""
    turned_away: int | None = None
    """Requests that the engine refused because its own queue was full; total since it started."""
    error: str = ""
    """Why ``ready`` is False, in words."""

    def preemptions_since(self, earlier: Reading | None) -> int:
        """How many there were in between; 0 where the engine does not tell, or has started anew."""
        if earlier is None or earlier.preemptions is None or self.preemptions is None:
            return 0
        return max(0, self.preemptions - earlier.preemptions)

    def counts_anew(self, earlier: Reading) -> bool:
        """A total has fallen: the engine was started again in between."""
        return _fell(earlier.preemptions, self.preemptions) or _fell(
            earlier.prefix_asked_tokens, self.prefix_asked_tokens
        )


def _fell(before: int | None, after: int | None) -> bool:
    return before is not None and after is not None and after < before


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """What one replica can hold. None: unknown, that gate stays open and the adaptive limit acts."""

    kv_tokens: int | None = None
    """KV pool in tokens."""
    slot_tokens: int = 256
    """Size of one slot in tokens: slot_bytes ÷ KV bytes per token."""
    bytes_per_token: int | None = None
    """KV bytes of one token; only a replica in a slot group needs it."""
    sequences: int | None = None
    """Most sequences the engine runs beside each other."""
    context_tokens: int | None = None
    """Longest prompt + output of one sequence."""

    @property
    def slots(self) -> int | None:
        return None if self.kv_tokens is None else self.kv_tokens // self.slot_tokens

    @property
    def slot_bytes(self) -> int:
        """KV bytes of one slot; 0 where nobody asks."""
        return self.slot_tokens * (self.bytes_per_token or 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaConfig:
    """One engine server, as the policies know it."""

    name: str
    upstream: str
    capacity: Capacity = Capacity()
    abort_grace_s: float = 2.0
    """How long an aborted attempt keeps its slots when the engine never confirms."""
    confirms_aborts: bool = False
    """Readings of this engine tell how many sequences run, so aborts can be confirmed."""
    group: str | None = None
    """The slot group whose memory it uses (``GroupConfig.name``)."""
    domain: str = ""
    """What it shares with others that can fail at once, such as a zone or a host."""
