"""One request under way, as its client sees it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from tidegate.load.answer_scan import AnswerScan
from tidegate.load.ask import Ask
from tidegate.load.client_judgement import judge
from tidegate.load.gap_counts import GapCounts
from tidegate.load.heard import End, Heard, hear_body, hear_stream
from tidegate.load.sample import Sample
from tidegate.wire.header_names import (
    ATTEMPTS,
    CONTENT_TYPE,
    DEGRADED,
    OUTPUT,
    QUEUE_MS,
    REPLICA,
    RETRY_AFTER,
    RETRY_AFTER_MS,
)
from tidegate.wire.responses import ResponseReader


class Leg(Protocol):
    """The connection that carries it."""

    def abort(self) -> None: ...


class Flight:
    """Fed by its connection; every moment is the clock's own, the sample's counts from the run's beginning."""

    __slots__ = (
        "_body",
        "_first_at",
        "_gaps",
        "_head_at",
        "_headers",
        "_last_at",
        "_reads",
        "_scan",
        "_status",
        "_token_gaps",
        "_worst_gap_s",
        "ask",
        "due_at",
        "is_over",
        "is_resent",
        "is_reused",
        "leg",
        "on_end",
        "request",
        "sent_at",
    )

    def __init__(self, ask: Ask, request: bytes, gaps: tuple[GapCounts, GapCounts]) -> None:
        """``gaps``: where its gaps are counted, per read and per token."""
        self.ask = ask
        self.request = request
        self.due_at = self.sent_at = 0.0
        self.on_end: Callable[[Flight, End, str], None] | None = None
        self.leg: Leg | None = None
        self.is_over = False
        self.is_reused = False
        self.is_resent = False
        self._gaps, self._token_gaps = gaps
        self._status = 0
        self._headers: dict[bytes, bytes] = {}
        self._scan: AnswerScan | None = None
        self._body: list[bytes] = []
        self._head_at = self._first_at = self._last_at = 0.0
        self._reads = 0
        self._worst_gap_s = 0.0

    def take(self, reader: ResponseReader, now: float) -> None:
        """A read came; the head of the answer is complete."""
        if not self._status:
            self._take_head(reader, now)
        pieces = reader.pieces
        if not pieces:
            return
        piece = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        pieces.clear()
        scan = self._scan
        if scan is None:
            self._body.append(piece)
            self._first_at = self._first_at or now
            return
        count = scan.feed(piece)
        if count:
            self._take_parts(count, now)

    def end(self, end: End, problem: str = "") -> None:
        """It is over, once; who waits for it is told."""
        if self.is_over:
            return
        self.is_over = True
        self.leg = None
        if self.on_end is not None:
            self.on_end(self, end, problem)

    def heard(self, end: End, problem: str) -> Heard:
        headers = self._headers
        heard = Heard(
            end=end,
            problem=problem,
            status=self._status,
            degraded=_text(headers.get(DEGRADED)),
            label=_text(headers.get(OUTPUT)),
        )
        if self._scan is not None:
            hear_stream(heard, self._scan)
        elif self._body:
            hear_body(heard, b"".join(self._body))
        return heard

    def sample(self, heard: Heard, ended_at: float, zero: float) -> Sample:
        """``zero``: when the run began; phase, target and worker are the sender's to write."""
        ask, headers = self.ask, self._headers
        outcome, code = judge(ask, heard)
        chunks = heard.parts if self._scan is not None else 0
        prompt, cached, output = heard.usage or (0, 0, chunks)
        queue_ms = headers.get(QUEUE_MS)
        return Sample(
            phase="",
            target="",
            index=ask.index,
            label=ask.label,
            due_at=self.due_at - zero,
            sent_at=_since(self.sent_at, zero),
            ended_at=ended_at - zero,
            outcome=outcome,
            tenant=ask.tenant,
            session=ask.session,
            is_stream=ask.is_stream,
            status=self._status,
            code=code,
            head_at=_since(self._head_at, zero),
            first_at=_since(self._first_at, zero),
            # A whole answer is one piece: nothing in it tells a time per token.
            last_at=_since(self._last_at if self._scan is not None else self._first_at, zero),
            chunks=chunks,
            reads=self._reads,
            worst_gap_s=self._worst_gap_s,
            retry_after_s=_retry_after_s(headers),
            prompt_tokens=prompt,
            cached_tokens=cached,
            output_tokens=output,
            is_counted=heard.usage is not None,
            meant_tokens=ask.prompt_tokens,
            max_tokens=ask.max_tokens or 0,
            finish_reason=heard.finish_reason,
            degraded=heard.degraded,
            queue_s=None if queue_ms is None else _number(queue_ms) / 1000,
            replica=_text(headers.get(REPLICA)),
            attempts=int(_number(headers.get(ATTEMPTS, b"1"))),
            continuations=self._scan.continuations if self._scan is not None else 0,
            is_reused=self.is_reused,
            text=(heard.text or "") if ask.keeps_text else "",
            extra=ask.extra,
        )

    def _take_head(self, reader: ResponseReader, now: float) -> None:
        self._status = reader.status
        self._head_at = now
        self._headers = headers = dict(reader.headers)
        if headers.get(CONTENT_TYPE, b"").startswith(b"text/event-stream"):
            self._scan = AnswerScan(keeps_text=self.ask.keeps_text or self.ask.wants_json)

    def _take_parts(self, count: int, now: float) -> None:
        last = self._last_at
        self._last_at = now
        self._reads += 1
        if not last:
            self._first_at = now
            return
        gap = now - last
        if gap > self._worst_gap_s:
            self._worst_gap_s = gap
        self._gaps.add(gap)
        part = gap / count
        for _ in range(count):
            self._token_gaps.add(part)


def _since(moment: float, zero: float) -> float:
    return moment - zero if moment else 0.0


def _text(value: bytes | None) -> str:
    return "" if value is None else value.decode("latin-1")


def _number(text: bytes) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


def _retry_after_s(headers: dict[bytes, bytes]) -> float:
    """0.0 where nothing is said, or a date."""
    if RETRY_AFTER_MS in headers:
        return _number(headers[RETRY_AFTER_MS]) / 1000
    return _number(headers.get(RETRY_AFTER, b""))
