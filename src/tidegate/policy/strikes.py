"""How often a key has done what counts against it.

Two rules, of which the configuration chooses (SPEC C5). *Windowed*: so many within the last seconds, whatever lies
between them. *Consecutive*: so many in a row, a success takes all of them back; those older than the window do not
count either, so that five timeouts in five months mark nobody. Windowed is the default, for it is what the
parameters of SPEC S0-46 and S0-47 express, and because a key with one good request between bad ones is no better.
"""

from __future__ import annotations

from collections import OrderedDict, deque

MOST_KEYS = 10_000


class Strikes:
    """The table of one kind of offence, by (kind, key). When it is full, the key that is quiet for longest goes."""

    __slots__ = ("_keys",)

    def __init__(self) -> None:
        self._keys: OrderedDict[tuple[str, str], deque[float]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._keys)

    def add(self, key: tuple[str, str], count: int, window_s: float, now: float) -> int:
        """One more. Returns how many there are within ``window_s`` when that is ``count`` or more, and forgets
        them; else 0."""
        times = self._keys.pop(key, None) or deque()
        times.append(now)
        while times[0] <= now - window_s:
            times.popleft()
        if len(times) >= count:
            return len(times)
        if len(self._keys) >= MOST_KEYS:
            self._keys.popitem(last=False)
        self._keys[key] = times
        return 0

    def clear(self, key: tuple[str, str]) -> None:
        """A success: the row is broken."""
        self._keys.pop(key, None)

    def expire(self, window_s: float, now: float) -> None:
        """Forget keys whose last strike is older than the window."""
        while self._keys:
            key = next(iter(self._keys))
            if self._keys[key][-1] > now - window_s:
                return
            del self._keys[key]
