"""The most recent rows, by the id their client saw."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import islice

from tidegate.lens.row import Row

DEFAULT_ROWS = 4096
"""About 3 MB; at 10 requests a second it reaches back seven minutes."""


class Ring:
    """Keeps the last ``size`` rows (0: none); lives in the parent."""

    def __init__(self, size: int = DEFAULT_ROWS) -> None:
        self.size = size
        self.lost = 0
        """Rows that the data process had to drop before they came here."""
        self._rows: deque[Row] = deque()
        self._by_request_id: dict[str, list[Row]] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, rows: Iterable[Row]) -> None:
        """Append ``rows``, oldest first; as many of the oldest kept ones go."""
        for row in rows if self.size else ():
            if len(self._rows) >= self.size:
                self._forget(self._rows.popleft())
            self._rows.append(row)
            self._by_request_id.setdefault(row.request_id, []).append(row)

    def find(self, request_id: str) -> list[Row]:
        """Rows under this ``x-request-id``, oldest first: several when a client used it again."""
        return list(self._by_request_id.get(request_id, ()))

    def recent(self, limit: int) -> list[Row]:
        """At most ``limit`` rows, newest first."""
        return list(islice(reversed(self._rows), limit))

    def __iter__(self) -> Iterator[Row]:
        return iter(self._rows)

    def _forget(self, row: Row) -> None:
        same_id = self._by_request_id[row.request_id]
        del same_id[0]
        if not same_id:
            del self._by_request_id[row.request_id]
