"""Where finished requests go: into the counters here, and up to the parent as rows."""

from __future__ import annotations

from collections.abc import Callable

from tidegate.lens.edge import Edge, row_of, row_of_invalid
from tidegate.lens.metrics import Metrics
from tidegate.lens.row import Row
from tidegate.policy.record import Record


class Journal:
    """``send_up`` takes each row; it batches."""

    def __init__(self, metrics: Metrics, send_up: Callable[[Row], None]) -> None:
        self.metrics = metrics
        self.are_rows_sent = True
        """Off: they are only counted."""
        self._send_up = send_up

    def closed(self, record: Record, edge: Edge) -> None:
        """A request is over."""
        row = row_of(record, edge)
        self.metrics.observe(row)
        if self.are_rows_sent:
            self._send_up(row)

    def rejected(self, edge: Edge, number: int, arrived_at: float, closed_at: float, body_bytes: int) -> None:
        """A call was answered before it became a request."""
        row = row_of_invalid(edge, number, arrived_at, closed_at, body_bytes)
        self.metrics.observe(row)
        if self.are_rows_sent:
            self._send_up(row)
