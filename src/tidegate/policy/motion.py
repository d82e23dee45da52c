"""Whether a replica gets on with what it has: when it last showed a token, an end, or a reading that moved.

Busy is never dead. A long prefill shows no token, but an engine whose readings say how much KV is in use fills it step
by step; such an engine stands still when these figures do. Which engines do so is found out, not configured: one whose
KV changed between two readings with the same sequences running. llama.cpp's does not (a slot is taken as a whole), so
there silence says nothing by itself.
"""

from __future__ import annotations

from tidegate.policy.reading import Reading

GAP_KEPT = 0.98
"""Of ``gap_s`` at each reading that moved: what was long a minute ago is forgotten."""


class Motion:
    __slots__ = ("at", "began_at", "gap_s", "is_told")

    def __init__(self) -> None:
        self.at = 0.0
        """When it last moved."""
        self.began_at = 0.0
        """When its process was last seen to be a new one."""
        self.is_told = False
        """Its readings move while it works, and so tell when it does not."""
        self.gap_s = 0.0
        """The longest time for which it stood still under work and then moved on; fades."""

    def note(self, before: Reading | None, reading: Reading) -> None:
        """A new reading. What only waits inside the engine is no motion: a dead one lets it grow."""
        if before is None:
            return
        is_same_batch = reading.running == before.running
        has_kv_moved = reading.kv_used_tokens != before.kv_used_tokens
        if has_kv_moved and is_same_batch and before.kv_used_tokens is not None:
            self.is_told = True
        if has_kv_moved or not is_same_batch or reading.preemptions != before.preemptions:
            if before.running and self.at:
                self.gap_s = max(self.gap_s * GAP_KEPT, reading.at - self.at)
            self.at = max(self.at, reading.at)

    def come_back(self, now: float) -> None:
        """Its process is a new one."""
        self.at = self.began_at = now
