"""How long answers turn out to be, learned as a share of what their clients declare.

A history for each power of two of the declared bound, each value as output ÷ bound: a client that always
uses its whole bound is recognised as 1.0 beside one that declares 1 024 and needs 90, and a shift of the
traffic from one to the other does not spoil either (measured: one history for all preempted 20 of 100
requests after such a shift, a history per class none). Until a history is long enough the declared bound is
what is expected. Aborted answers teach nothing.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import deque
from collections.abc import Mapping
from math import ceil, isfinite

VERSION = 1
"""Of what ``dump`` returns."""


class Window:
    """The last shares of one class: in order of age, and sorted."""

    __slots__ = ("_by_age", "most", "sorted")

    def __init__(self, most: int) -> None:
        self.most = most
        self.sorted: list[float] = []
        self._by_age: deque[float] = deque()

    def add(self, share: float) -> None:
        insort(self.sorted, share)
        self._by_age.append(share)
        if len(self._by_age) > self.most:
            del self.sorted[bisect_right(self.sorted, self._by_age.popleft()) - 1]

    def dump(self) -> list[float]:
        return [round(share, 6) for share in self._by_age]


class LengthHistory:
    """Conditional quantiles of what is left of an answer."""

    __slots__ = ("_classes", "fewest", "fewest_longer", "most")

    def __init__(self, *, most: int = 400, fewest: int = 8, fewest_longer: int = 3) -> None:
        self.most = most
        """Answers remembered of each class."""
        self.fewest = fewest
        """Answers below which a class knows nothing."""
        self.fewest_longer = fewest_longer
        """An answer that outlived all but so few is expected to use its whole bound."""
        self._classes: dict[int, Window] = {}

    def __len__(self) -> int:
        return sum(len(window.sorted) for window in self._classes.values())

    def record(self, most_output_tokens: int, output_tokens: int) -> None:
        """An answer that came to its end by itself."""
        window = self._classes.setdefault(class_of(most_output_tokens), Window(self.most))
        window.add(min(1.0, output_tokens / most_output_tokens))

    def left_tokens(self, most_output_tokens: int, output_tokens: int, quantile: float) -> int:
        """What is expected to come after ``output_tokens``: of all remembered answers of this class that were
        longer, the ``quantile``. At least 1, at most what the bound leaves, and that where too little is known."""
        most_left = max(1, most_output_tokens - output_tokens)
        window = self._classes.get(class_of(most_output_tokens))
        if window is None or len(window.sorted) < self.fewest:
            return most_left
        longer, left = self.left(most_output_tokens, output_tokens, quantile)
        return most_left if longer < self.fewest_longer else left

    def left(self, most_output_tokens: int, output_tokens: int, quantile: float) -> tuple[int, int]:
        """How many remembered answers of this class were longer than ``output_tokens``, and the ``quantile`` of
        what they wrote after it, at least 1 and at most what the bound leaves. (0, that) without any."""
        most_left = max(1, most_output_tokens - output_tokens)
        window = self._classes.get(class_of(most_output_tokens))
        if window is None:
            return 0, most_left
        begin = bisect_right(window.sorted, output_tokens / most_output_tokens)
        longer = len(window.sorted) - begin
        if not longer:
            return 0, most_left
        share = window.sorted[begin + min(longer - 1, int(quantile * longer))]
        return longer, max(1, min(most_left, ceil(share * most_output_tokens) - output_tokens))

    def dump(self) -> dict[str, object]:
        """As JSON can hold it."""
        return {"version": VERSION, "classes": {str(name): each.dump() for name, each in self._classes.items()}}

    def restore(self, state: object) -> None:
        """Take over what ``dump`` gave. Raises ValueError for anything else, and then changes nothing."""
        classes = _classes_in(state)
        found = {name: Window(self.most) for name in classes}
        for name, shares in classes.items():
            for share in shares:
                found[name].add(share)
        self._classes = found


def class_of(most_output_tokens: int) -> int:
    """Bounds of one power of two share a history."""
    return most_output_tokens.bit_length()


def _classes_in(state: object) -> dict[int, list[float]]:
    if not isinstance(state, Mapping) or state.get("version") != VERSION:
        raise ValueError(f"not a history of answer lengths of version {VERSION}")
    classes = state.get("classes")
    if not isinstance(classes, Mapping):
        raise ValueError("a history of answer lengths without classes")
    return {_name(name): [_share(value) for value in _shares(shares)] for name, shares in classes.items()}


def _name(name: object) -> int:
    if not isinstance(name, str) or not name.isdigit():
        raise ValueError(f"{name!r} is not the class of a bound")
    return int(name)


def _shares(shares: object) -> list[object]:
    if not isinstance(shares, list):
        raise ValueError(f"the shares of a class are a list, not {shares!r}")
    return shares


def _share(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value) or not 0 <= value <= 1:
        raise ValueError(f"{value!r} is not a share of a bound, between 0 and 1")
    return float(value)
