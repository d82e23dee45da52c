"""Rows on their way from the data process to the parent."""

from __future__ import annotations

import asyncio
from collections import deque

from tidegate.gateway.channel import ChildEnd
from tidegate.gateway.messages import Records
from tidegate.lens.row import Row

FLUSH_AFTER_S = 0.2
ROWS_PER_MESSAGE = 128
"""Encoding 128 rows holds the loop for well under 1 ms (DESIGN §5)."""
MOST_WAITING = 16_384
"""Rows kept while the parent does not read: about 10 MB. Above it the oldest are lost and counted."""


class Outbox:
    """Batches rows: one message per 128 rows or 0.2 s. Owned by the data process's loop."""

    def __init__(self, channel: ChildEnd, loop: asyncio.AbstractEventLoop, most_waiting: int = MOST_WAITING) -> None:
        self._channel = channel
        self._loop = loop
        self._most_waiting = most_waiting
        self._rows: deque[Row] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self.lost = 0
        """Rows dropped since the start."""

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, row: Row) -> None:
        """Send ``row`` soon."""
        if len(self._rows) >= self._most_waiting:
            self._rows.popleft()
            self.lost += 1
        self._rows.append(row)
        if self._timer is None:
            self._timer = self._loop.call_later(FLUSH_AFTER_S, self.flush)
        elif len(self._rows) == ROWS_PER_MESSAGE:
            self._timer.cancel()
            self._timer = self._loop.call_later(0, self.flush)

    def flush(self) -> None:
        """Send one batch; call once more at shutdown (see ``drain``)."""
        self._timer = None
        if self._channel.is_writable:
            self._send_batch()
        if self._rows:
            delay_s = 0.0 if self._channel.is_writable else FLUSH_AFTER_S
            self._timer = self._loop.call_later(delay_s, self.flush)

    def drain(self) -> None:
        """Send everything at once: the process is about to end."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._rows and self._channel.is_open:
            self._send_batch()

    def _send_batch(self) -> None:
        rows = [self._rows.popleft() for _ in range(min(ROWS_PER_MESSAGE, len(self._rows)))]
        if not self._channel.send(Records(rows, self.lost)):
            self.lost += len(rows)
