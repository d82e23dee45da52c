"""Whether a replica gets on with what it has: when it last showed a token, an end, or a reading that moved.

Busy is never dead. A long prefill shows no token, but an engine whose readings say how much KV is in use fills it step
by step; such an engine stands still when these figures do. Which engines do so is found out, not configured: one whose
KV changed between two readings with the same sequences running. llama.cpp's does not (a slot is taken as a whole), so
there silence says nothing by itself.
"""

from __future__ import annotations

from tidegate.policy.reading import Reading


class Motion:
    __slots__ = ("at", "began_at", "is_told")

    def __init__(self) -> None:
        self.at = 0.0
        """When it last moved."""
        self.began_at = 0.0
        """When its process was last seen to be a new one."""
        self.is_told = False
        """Its readings move while it works, and so tell when it does not."""

    def note(self, before: Reading | None, reading: Reading) -> None:
        """A new reading. What only waits inside the engine is no motion: a dead one lets it grow."""
        if before is None:
            return
        is_same_batch = reading.running == before.running
        if reading.kv_used_tokens != before.kv_used_tokens:
            self.is_told = self.is_told or (is_same_batch and before.kv_used_tokens is not None)
            self.at = max(self.at, reading.at)
        elif not is_same_batch or reading.preemptions != before.preemptions:
            self.at = max(self.at, reading.at)

    def come_back(self, now: float) -> None:
        """Its process is a new one."""
        self.at = self.began_at = now
