"""A whole answer that was asked for as a stream, because the engine notices only in a stream that its client left.

llama.cpp looks after the client of a whole answer only in a second in which it finished no token for anybody:
beside other streams such an answer would be computed to its end for nobody (docs/engines.md).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from tidegate.gateway.engine_connection import Asker
from tidegate.gateway.watching import Watch
from tidegate.wire.assembly import Assembly
from tidegate.wire.header_names import CONTENT_TYPE
from tidegate.wire.responses import ResponseReader

WHOLE_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json; charset=utf-8"


class Client(Asker, Protocol):
    """Who wants the answer whole."""

    def finish_whole(self, status: int, head: bytes, body: bytes, now: float) -> None:
        """The answer, with the status line and header lines that it would have had."""

    def finish_early(self, status: int, body: bytes, written_tokens: int, now: float) -> None:
        """What has come of an answer that is of no use any more; the engine still writes it."""


class Gathering:
    """Stands between one connection and its exchange. Whatever is no stream passes as it comes."""

    __slots__ = ("_assembly", "_client", "_is_stream", "_is_useless", "_now", "_watch")

    def __init__(self, client: Client, now: Callable[[], float], watch: Watch | None = None) -> None:
        self._client = client
        self._watch = watch
        """Ends an answer that repeats itself, say, before the engine has written all of it."""
        self._now = now
        self._assembly = Assembly()
        self._is_useless = False
        """What comes would become an error, however it goes on."""
        self._is_stream: bool | None = None
        """None until the head has come."""

    def answer_read(self, reader: ResponseReader) -> None:
        """Part of ``Asker``."""
        if not self._take(reader):
            self._client.answer_read(reader)
        elif self._is_useless and not self._assembly.problem:
            assembly, self._is_useless = self._assembly, False
            self._client.finish_early(reader.status, assembly.body(), assembly.chunks, self._now())

    def answer_complete(self, reader: ResponseReader) -> None:
        """Part of ``Asker``."""
        if not self._take(reader):
            self._client.answer_complete(reader)
            return
        assembly = self._assembly
        if assembly.problem or not assembly.is_done:
            self._client.answer_lost(assembly.problem or "the engine's stream ended before the answer was complete")
        else:
            self._client.finish_whole(reader.status, WHOLE_HEAD, assembly.body(), self._now())

    def answer_lost(self, problem: str) -> None:
        """Part of ``Asker``."""
        self._client.answer_lost(problem)

    def _take(self, reader: ResponseReader) -> bool:
        """False: what comes is no stream."""
        if self._is_stream is None:
            kind = dict(reader.headers).get(CONTENT_TYPE, b"")
            self._is_stream = reader.status == 200 and kind.startswith(b"text/event-stream")
        if self._is_stream:
            for piece in reader.pieces:
                self._assembly.feed(piece)
                if self._watch is not None and self._watch.take(piece, self._now()):
                    self._is_useless = True
            reader.pieces = []
        return self._is_stream
