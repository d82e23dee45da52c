"""Carries one engine's answer to one client: every read at once, the bytes of a stream unchanged.

Three ways, chosen by the answer's head. A stream of events is watched as it passes, so that its end
can be told from a cut. A JSON answer is held until it is whole, so that a cut one becomes an error
instead of half an answer. Anything else just passes.
"""

from __future__ import annotations

from tidegate.gateway.reply import Reply, header_lines
from tidegate.wire import header_names as names
from tidegate.wire.responses import ResponseReader
from tidegate.wire.sse import EventScan, Usage

MOST_HELD_BYTES = 1 << 20
"""A JSON answer above this passes as it comes; only large batches of embeddings are longer."""


class Relay:
    """Of one attempt. ``now`` is on the loop's clock, seconds."""

    __slots__ = (
        "_held",
        "_held_bytes",
        "_length",
        "_lines",
        "_plain_usage",
        "_reply",
        "headers",
        "last_read_at",
        "scan",
        "status",
        "worst_gap_s",
    )

    def __init__(self, reply: Reply, reader: ResponseReader, own_lines: bytes, now: float) -> None:
        self._reply = reply
        self.status = reader.status
        self.headers = reader.headers
        self._length: bytes | None = None
        content_type = b""
        for name, value in reader.headers:
            if name == names.CONTENT_TYPE:
                content_type = value
            elif name == names.CONTENT_LENGTH:
                self._length = value
        is_stream = content_type.startswith(b"text/event-stream") and self.status == 200
        self.scan = EventScan() if is_stream else None
        """None: no stream of events."""
        is_held = not is_stream and (self.status >= 400 or content_type.startswith(b"application/json"))
        self._held: list[bytes] | None = [] if is_held else None
        self._held_bytes = 0
        self._lines = own_lines
        self._plain_usage = Usage()
        self.last_read_at = now
        self.worst_gap_s = 0.0
        """Longest time between two reads."""

    @property
    def is_held(self) -> bool:
        """Nothing of this answer has been sent, and all of it is here."""
        return self._held is not None

    @property
    def has_forwarded(self) -> bool:
        """The client has seen some of this answer: no other can take its place."""
        if self.scan is not None:
            return self.scan.events > 0 or not self.scan.is_between_events
        return self._held is None and self._reply.has_head

    @property
    def usage(self) -> Usage:
        return self._plain_usage if self.scan is None else self.scan.usage

    def take(self, reader: ResponseReader, now: float) -> int:
        """Pass on what was read; how many ``data`` events of a stream became complete by it."""
        pieces = reader.pieces
        if not pieces:
            return 0
        data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        reader.pieces = []
        scan = self.scan
        if scan is None:
            self._note_read(now)
            if self._held is None:
                self._plain_usage.read(data)
                self._forward(data)
            else:
                self._hold(data)
            return 0
        events = scan.feed(data)
        # An engine's own heartbeats are no progress, or a stalled stream would never time out.
        if events or not data.startswith(b":"):
            self._note_read(now)
        if scan.error_ends_at is not None:
            data = data[: scan.error_ends_at]
        self._forward(data)
        return events

    def _note_read(self, now: float) -> None:
        gap_s = now - self.last_read_at
        self.last_read_at = now
        self.worst_gap_s = max(self.worst_gap_s, gap_s)

    def held_body(self) -> bytes:
        """The whole body of a held answer, its usage read."""
        held = self._held or []
        body = held[0] if len(held) == 1 else b"".join(held)
        self._plain_usage.read(body)
        return body

    def send_held(self, body: bytes) -> None:
        """Send a held answer as the engine gave it."""
        self._reply.whole(self.status, self._head_lines(), body)

    def end(self) -> None:
        """The answer is complete and was not held."""
        if not self._reply.has_head:
            self._reply.open(self.status, self._head_lines(), self._length, b"")
        self._reply.end()

    def _forward(self, data: bytes) -> None:
        reply = self._reply
        if reply.has_head:
            if data:
                reply.piece(data)
        else:
            # An event of ours may be added to a stream, so its length is never promised.
            reply.open(self.status, self._head_lines(), self._length if self.scan is None else None, data)

    def _hold(self, data: bytes) -> None:
        held = self._held
        if held is None:
            return
        held.append(data)
        self._held_bytes += len(data)
        if self._held_bytes > MOST_HELD_BYTES:
            self._held = None
            self._forward(b"".join(held))

    def _head_lines(self) -> bytes:
        passed = [header for header in self.headers if header[0] not in names.NOT_RETURNED]
        return header_lines(passed) + self._lines
