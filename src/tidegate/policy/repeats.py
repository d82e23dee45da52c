"""Who came before and went away empty: a client that repeats its request keeps its first place.

Treating a retry as new turns an overload into a lasting one: measured in simulation, a central
first-come queue that does so loses 29–73 % of a retry storm, and 0 % when it keeps first arrivals
(the project's calibration, §6). The client proves the repeat with its own request id.
"""

from __future__ import annotations

from collections import OrderedDict

MOST_KEYS = 20_000
KEEP_S = 120.0


class Repeats:
    __slots__ = ("_first",)

    def __init__(self) -> None:
        self._first: OrderedDict[tuple[str, str], float] = OrderedDict()

    def __len__(self) -> int:
        return len(self._first)

    def first_arrival(self, tenant: str, key: str, now: float) -> float | None:
        """When this key first came, if it was sent away within the last two minutes. Used up."""
        first = self._first.pop((tenant, key), None)
        return first if first is not None and now - first <= KEEP_S else None

    def went_empty(self, tenant: str, key: str, first_arrived_at: float) -> None:
        self._first.pop((tenant, key), None)
        if len(self._first) >= MOST_KEYS:
            self._first.popitem(last=False)
        self._first[tenant, key] = first_arrived_at
