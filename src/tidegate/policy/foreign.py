"""What a reading tells of a replica beyond our own books: which aborts are over, and how much load is not ours.

Own accounting first (R1): readings only correct it. An aborted attempt is over when the engine's count of running
sequences has no room for it, oldest first. Load is foreign if two readings in a row show it: one alone may just be
older than the end of a request of ours.
"""

from __future__ import annotations

from collections.abc import Iterable

from tidegate.policy.permit import Permit
from tidegate.policy.reading import Reading


def confirmed_aborts(
    aborting: list[Permit], permits: Iterable[Permit], reading: Reading, abort_grace_s: float
) -> list[Permit]:
    """Aborts older than the reading that its running count has no room for. ``permits``: all, aborting ones too."""
    if reading.running is None or not aborting:
        return []
    in_abort = sum(permit.sequences for permit in aborting)
    live = sum(permit.sequences for permit in permits if permit.admitted_at < reading.at) - in_abort
    still_running = max(0, reading.running + (reading.waiting or 0) - live)
    confirmed = []
    for permit in aborting:
        if in_abort - permit.sequences >= still_running and permit.abort_by - abort_grace_s < reading.at:
            confirmed.append(permit)
            in_abort -= permit.sequences
    return confirmed


class ForeignLoad:
    __slots__ = ("_before",)

    def __init__(self) -> None:
        self._before = (0, 0)

    def note(self, reading: Reading, own_sequences: int, own_slots: int, slot_tokens: int) -> tuple[int, int]:
        """Foreign sequences and slots, by this reading and the one before it."""
        sequences = 0 if reading.running is None else max(0, reading.running - own_sequences)
        own_tokens = own_slots * slot_tokens
        tokens = 0 if reading.kv_used_tokens is None else max(0, reading.kv_used_tokens - own_tokens)
        slots = -(-tokens // slot_tokens)
        before, self._before = self._before, (sequences, slots)
        return min(sequences, before[0]), min(slots, before[1])
