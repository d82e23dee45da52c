"""What a connection through a fault proxy carried, request by request."""

from __future__ import annotations

import time
from collections import Counter, deque

import msgspec

from tidegate.errors import ProtocolError
from tidegate.wire.requests import Incoming, RequestReader
from tidegate.wire.responses import ResponseReader

CALL_HEADER = "x-drill-call"
"""By it a drill finds its own requests at the engine; the gateway passes it on as any header that it does not know."""
LOGGED = 200_000
HEAD_BYTES, BODY_BYTES = 1 << 20, 1 << 28


class Passed(msgspec.Struct, frozen=True):
    """One request that reached the server as a whole."""

    at: float
    """On the machine's monotonic clock."""
    method: str
    target: str
    request_id: str
    call: str


class Ledger:
    """Of all connections of one proxy."""

    def __init__(self) -> None:
        self.log: deque[Passed] = deque(maxlen=LOGGED)
        self.answered: Counter[str] = Counter()
        """Whole 2xx answers that the server wrote to POSTs, by ``x-request-id``; whether they arrived is not said."""
        self.answered_calls: Counter[str] = Counter()
        """The same by ``CALL_HEADER``."""
        self.pages: dict[str, bytes] = {}
        """Body of the last good answer to each GET, by its target."""


class Wiretap:
    """One connection. What is no HTTP is not noted, and passes all the same."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._requests: RequestReader | None = RequestReader(HEAD_BYTES, BODY_BYTES)
        self._response = ResponseReader()
        self._waiting: deque[Passed] = deque()
        self._page: list[bytes] = []

    def ask(self, piece: bytes) -> None:
        """This has gone on to the server."""
        if self._requests is None:
            return
        try:
            self._requests.feed(piece)
        except ProtocolError:
            self._requests = None
            return
        while self._requests.ready:
            request = passed(self._requests.ready.popleft(), time.monotonic())
            self._ledger.log.append(request)
            self._waiting.append(request)

    def answer(self, piece: bytes) -> None:
        """This came from the server. Of answers that are framed by the connection's end the end is not seen."""
        try:
            self._response.feed(piece)
        except ProtocolError:
            self._waiting.clear()
            return
        if self._waiting and self._waiting[0].method == "GET":
            self._page += self._response.pieces
        self._response.pieces.clear()
        if self._response.is_complete and self._waiting:
            self._end(self._waiting.popleft(), is_good=200 <= self._response.status < 300)
            self._response.start()

    def _end(self, request: Passed, *, is_good: bool) -> None:
        """One answer is whole."""
        if request.method == "POST" and is_good:
            self._ledger.answered[request.request_id] += 1
            self._ledger.answered_calls[request.call] += bool(request.call)
        elif request.method == "GET" and is_good:
            self._ledger.pages[request.target] = b"".join(self._page)
        self._page.clear()

    def close(self) -> None:
        """Break the cycles with the parsers."""
        if self._requests is not None:
            self._requests.close()
        self._response.close()


def passed(incoming: Incoming, at: float) -> Passed:
    fields = {name.decode("latin-1"): value.decode("latin-1") for name, value in incoming.headers}
    method, target = incoming.method.decode("latin-1"), incoming.target.decode("latin-1")
    return Passed(at, method, target, fields.get("x-request-id", ""), fields.get(CALL_HEADER, ""))
