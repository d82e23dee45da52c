"""How much of one replica each service class holds, and whether it may hold more.

Two rules, each on the sequences that the replica runs at once and on its KV slots:

    held by the class + wanted  ≤  max_share × total
    held by all + wanted + Σ over other classes of max(0, floor × total − held by it)  ≤  total

Of the prompt tokens that a replica may have before it, a class fills ``max_share`` too.

The first rule keeps long requests from taking what ordinary ones need (SPEC S0-29, S3-18), the second keeps a part
free for a class that is not there at the moment (SMG's reservations, research: field survey B3, but on memory
too, since a prompt of 100k tokens and one of ten are one request each). A class that holds nothing may have
one request by the first rule, and an empty replica admits by both, so that nothing waits for ever.
"""

from __future__ import annotations

from collections.abc import Mapping

from tidegate.policy.classes import ClassConfig
from tidegate.policy.permit import Permit


class ClassShares:
    """The account of one replica. Only classes that have a share or a floor are counted."""

    __slots__ = ("_floors", "_shares", "is_active", "sequences", "slots")

    def __init__(self, classes: Mapping[str, ClassConfig]) -> None:
        self.sequences: dict[str, int] = {}
        """Held by class."""
        self.slots: dict[str, int] = {}
        self.is_active = False
        self._shares: dict[str, float] = {}
        self._floors: dict[str, float] = {}
        self.reconfigure(classes, ())

    def reconfigure(self, classes: Mapping[str, ClassConfig], permits: tuple[Permit, ...]) -> None:
        """Take other shares; ``permits`` are all that the replica holds."""
        self._shares = {name: each.max_share for name, each in classes.items() if each.max_share < 1.0}
        self._floors = {name: each.floor for name, each in classes.items() if each.floor > 0.0}
        self.is_active = bool(self._shares or self._floors)
        counted = self._shares.keys() | self._floors.keys()
        self.sequences = dict.fromkeys(sorted(counted), 0)
        self.slots = dict.fromkeys(sorted(counted), 0)
        for permit in permits:
            self.take(permit, permit.sequences, permit.slots)

    def take(self, permit: Permit, sequences: int, slots: int) -> None:
        """A permit of that class holds so many more; negative: fewer."""
        name = permit.service_class
        if name in self.sequences:
            self.sequences[name] += sequences
            self.slots[name] += slots

    def concerns(self, service_class: str) -> bool:
        """Whether any share or floor can be in the way of a class."""
        return bool(self._floors) or service_class in self._shares

    def most(self, service_class: str) -> float:
        """The part of a replica that a class may hold."""
        return self._shares.get(service_class, 1.0)

    def bars(self, service_class: str, wanted: int, held: int, total: float, *, in_slots: bool) -> bool:
        """Whether the class may not have ``wanted`` more of ``total``, of which all classes hold ``held``."""
        by_class = self.slots if in_slots else self.sequences
        share = self._shares.get(service_class)
        if share is not None:
            own = by_class[service_class]
            if own > 0 and own + wanted > share * total:
                return True
        if not self._floors or held == 0:
            return False
        kept = 0.0
        for name, floor in self._floors.items():
            if name != service_class:
                kept += max(0.0, floor * total - by_class[name])
        return kept > 0.0 and held + wanted + kept > total

    def view(self) -> dict[str, object]:
        return {name: {"sequences": held, "slots": self.slots[name]} for name, held in self.sequences.items()}
