"""Carries one engine's answer to one client: every read at once, the bytes of a stream unchanged.

Three ways, chosen by the answer's head. A stream of events is watched as it passes, so that its end
can be told from a cut. A JSON answer is held until it is whole, so that a cut one becomes an error
instead of half an answer. Anything else just passes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from tidegate.gateway.reply import Reply
from tidegate.wire.header_names import CONTENT_LENGTH, CONTENT_TYPE, NOT_RETURNED
from tidegate.wire.responses import ResponseReader
from tidegate.wire.sse import COMPLETION_TOKENS, PROMPT_TOKENS, EventScan, before_done, usage_count

MOST_HELD_BYTES = 1 << 20
"""A JSON answer above this passes as it comes; only large batches of embeddings are longer."""


class Keeper(Protocol):
    """Keeps a stream so that it can go on elsewhere (``gateway.continuation``)."""

    def show(self, data: bytes, scan: EventScan) -> bytes:
        """What goes to the client now that ``data`` has come."""

    @property
    def is_holding(self) -> bool:
        """No event goes out before it is complete."""

    @property
    def is_finished(self) -> bool:
        """The engine has said why the answer ends, or nobody knows."""

    def rest(self) -> bytes:
        """What is left at the regular end."""

    def counted(self, prompt_tokens: int | None, output_tokens: int | None) -> tuple[int | None, int | None]:
        """Tokens that the running stream tells, as the whole answer's."""


class Watcher(Protocol):
    """Looks into a stream (``gateway.watching``)."""

    def take(self, data: bytes, now: float) -> bool:
        """One read. True: the answer ends here."""

    def trailer(self) -> bytes:
        """What is said of the answer at its regular end."""


class Relay:
    """Of one attempt. ``now`` tells the loop's time, seconds; ``own_lines`` are our header lines; ``keeper`` stands
    between a stream and the client, if anything does."""

    __slots__ = (
        "_completion_tokens",
        "_held_bytes",
        "_keeper",
        "_length",
        "_now",
        "_own_lines",
        "_prompt_tokens",
        "_reply",
        "head",
        "held",
        "is_failed",
        "last_read_at",
        "scan",
        "status",
        "watch",
        "worst_gap_s",
    )

    def __init__(
        self,
        reply: Reply,
        reader: ResponseReader,
        own_lines: bytes,
        now: Callable[[], float],
        keeper: Keeper | None = None,
    ) -> None:
        self._now = now
        self._reply = reply
        self._own_lines = own_lines
        self._keeper = keeper
        self.watch: Watcher | None = None
        """Looks into the stream as it passes."""
        self.status = reader.status
        self.head = reader.head
        headers = dict(reader.headers)
        content_type = headers.get(CONTENT_TYPE, b"")
        self._length = headers.get(CONTENT_LENGTH)
        self.scan: EventScan | None = None
        """Watches a stream of events; None for any other answer."""
        self.held: list[bytes] | None = None
        """Pieces of an answer of which nothing is sent yet; None when it passes as it comes."""
        self._held_bytes = 0
        if reader.status == 200 and content_type.startswith(b"text/event-stream"):
            self.scan = EventScan()
        elif reader.status >= 400 or content_type.startswith(b"application/json"):
            self.held = []
        self._prompt_tokens: int | None = None
        self._completion_tokens: int | None = None
        self.is_failed = False
        """The engine reported its own failure as an event, or what it writes is of no use."""
        self.last_read_at = now()
        self.worst_gap_s = 0.0
        """Longest time between two reads."""

    @property
    def has_forwarded(self) -> bool:
        """The client has seen some of this answer: no other can take its place."""
        if self.scan is not None:
            return self.scan.events > 0 or self.is_cut_open
        return self.held is None and self._reply.has_head

    @property
    def counted(self) -> tuple[int | None, int | None]:
        """Prompt and output tokens: the engine's word, or for a stream's output the number of events."""
        scan = self.scan
        if scan is None:
            return self._prompt_tokens, self._completion_tokens
        output_tokens = scan.events if scan.completion_tokens is None else scan.completion_tokens
        if self._keeper is not None:
            return self._keeper.counted(scan.prompt_tokens, output_tokens)
        return scan.prompt_tokens, output_tokens

    @property
    def ends_early(self) -> bool:
        """A stream ended regularly in the middle of an event or, if it could go on elsewhere, of its answer: an engine
        that is told to stop may do so. Without a keeper nobody knows where an answer ends: not all say [DONE]."""
        keeper, scan = self._keeper, self.scan
        if scan is None or scan.is_done:
            return False
        return not scan.is_between_events if keeper is None else not keeper.is_finished

    @property
    def is_cut_open(self) -> bool:
        """An event that the client has begun to read is not complete."""
        is_held = self._keeper is not None and self._keeper.is_holding
        return self.scan is not None and not is_held and not self.scan.is_between_events

    def take(self, reader: ResponseReader) -> int:
        """Pass on what was read; how many ``data`` events of a stream became complete by it.

        Runs for every read of every stream: each call that it saves is a tenth of a chunk's cost.
        """
        pieces = reader.pieces
        if not pieces:
            return 0
        data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        reader.pieces = []
        scan, reply = self.scan, self._reply
        if scan is None:
            self._take_plain(data)
            return 0
        events = scan.feed(data)
        # An engine's own heartbeats are no progress, or a stalled stream would never time out.
        if events or not data.startswith(b":"):
            now = self._now()
            gap_s = now - self.last_read_at
            self.last_read_at = now
            if gap_s > self.worst_gap_s:
                self.worst_gap_s = gap_s
        if self.watch is not None or self._keeper is not None or scan.error_ends_at is not None:
            data = self._shown(data, scan)
        if not data:
            return events
        if reply.has_head:
            reply.piece(data)
        else:
            self._open(data)
        return events

    def _shown(self, data: bytes, scan: EventScan) -> bytes:
        """What of a read goes to the client: nothing that comes after the end of an answer that has failed."""
        if scan.error_ends_at is not None:
            self.is_failed = True
        elif self.watch is not None and self.watch.take(data, self.last_read_at):
            self.is_failed = True
            data = before_done(data)
        if self._keeper is not None:
            return self._keeper.show(data, scan)
        return data[: scan.error_ends_at]

    def whole_body(self) -> bytes:
        """The body of a held answer."""
        return b"".join(self.held or ())

    def end(self) -> None:
        """The answer is complete and was not held."""
        last = b"" if self._keeper is None else self._keeper.rest()
        if self.watch is not None and self.scan is not None:
            told = self.watch.trailer()
            if told and self.is_cut_open:
                last += b"\n\n"
            last += told
        self.end_with(last)

    def end_with(self, event: bytes) -> None:
        """Nothing more comes of the answer, and ``event`` is its end; what was held back is dropped."""
        if not self._reply.has_head:
            self._open(b"")
        self._reply.end(event)

    def follow(self, relay: Relay) -> None:
        """Go on with the stream of ``relay``: for the client, the time between the two is one gap."""
        self.last_read_at, self.worst_gap_s = relay.last_read_at, relay.worst_gap_s

    def _take_plain(self, data: bytes) -> None:
        self.last_read_at = self._now()
        held = self.held
        if held is not None:
            held.append(data)
            self._held_bytes += len(data)
            if self._held_bytes <= MOST_HELD_BYTES:
                return
            self.held, data = None, b"".join(held)
        self._read_usage(data)
        if self._reply.has_head:
            self._reply.piece(data)
        else:
            self._open(data)

    def _open(self, data: bytes) -> None:
        # An event of ours may be added to a stream, so its length is never promised.
        length = None if self.scan is not None else self._length
        self._reply.open(self.status, self._head_lines(), length, data)

    def _read_usage(self, text: bytes) -> None:
        prompt_tokens = usage_count(text, PROMPT_TOKENS)
        if prompt_tokens is not None:
            self._prompt_tokens = prompt_tokens
            self._completion_tokens = usage_count(text, COMPLETION_TOKENS)

    def _head_lines(self) -> bytes:
        return passed_lines(self.head) + self._own_lines


def is_json(head: bytes) -> bool:
    """The head of an engine's answer says that its body is JSON, in the way in which all engines say it."""
    return head.lower().find(b"\ncontent-type: application/json") >= 0


def passed_lines(head: bytes) -> bytes:
    """The header lines of an engine's answer that a client gets."""
    kept = [line for line in head.split(b"\r\n")[1:] if line[: line.find(b":")].lower() not in NOT_RETURNED]
    kept.append(b"")
    return b"\r\n".join(kept)
