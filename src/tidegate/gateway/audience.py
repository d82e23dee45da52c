"""Several clients of one request: what its exchange says goes to each of them, in the framing it can read."""

from __future__ import annotations

from typing import Protocol

from tidegate.gateway.recording import Recording, others
from tidegate.gateway.running import Running
from tidegate.gateway.seat import Seat


class Owner(Protocol):
    """Whose audience it is."""

    def audience_left(self, audience: Audience) -> None:
        """The last client is gone; the request still runs."""

    def seat_left(self, audience: Audience, seat: Seat) -> None:
        """One client is gone before the end."""

    def answer_over(self, audience: Audience, seats: list[Seat], now: float) -> None:
        """The answer is sent to ``seats``, and the request is closed."""


class Audience(Recording):
    """For an exchange it is client and reply at once. Whoever joins hears first what was said before.

    A client that is slow does not hold up the others: the engine is paused only while all are slow, and one
    that has fallen ``2 × most_bytes`` behind the rest is cut off.
    """

    __slots__ = ("_is_slow", "_owner", "_seats", "original_id", "running")

    def __init__(self, owner: Owner, original_id: bytes, most_bytes: int) -> None:
        super().__init__(most_bytes)
        self._owner = owner
        self.original_id = original_id
        """``x-request-id`` of the request."""
        self.running: Running | None = None
        """The request, until it is over or given up."""
        self._seats: list[Seat] = []
        self._is_slow = False

    # ---- who is here ------------------------------------------------------------------------

    @property
    def is_empty(self) -> bool:
        return not self._seats

    def join(self, seat: Seat) -> None:
        """Let ``seat`` hear what was said so far, and what follows."""
        self._seats.append(seat)
        self.play(seat.reply, self._lines(self.lines, seat))
        self.keep_pace()

    def leave(self, seat: Seat) -> None:
        """Part of ``seat.Hall``."""
        self._seats.remove(seat)
        self._owner.seat_left(self, seat)
        if self._seats:
            self.keep_pace()
        else:
            self._owner.audience_left(self)

    def keep_pace(self) -> None:
        """Part of ``seat.Hall``."""
        is_slow = bool(self._seats) and all(seat.is_paused for seat in self._seats)
        running = self.running
        if is_slow == self._is_slow or running is None:
            return
        self._is_slow = is_slow
        if is_slow:
            running.pause()
        else:
            running.resume()

    def abandon(self) -> None:
        """Nobody wants the answer any more: the engine is told."""
        running, self.running = self.running, None
        if running is not None:
            running.client_left()

    # ---- as the client ----------------------------------------------------------------------

    def attach(self, exchange: Running) -> None:
        """Part of ``weighing.Holder``."""
        self.running, self._is_slow = exchange, False
        self.keep_pace()

    def exchange_over(self, keeps_alive: bool, now: float) -> None:
        """Part of ``exchange.Client``."""
        del keeps_alive  # Each connection's own reply knows.
        seats, self._seats = self._seats, []
        self.running = None
        self._owner.answer_over(self, seats, now)
        for seat in seats:
            seat.over(now)

    # ---- as the reply -----------------------------------------------------------------------

    def whole(self, status: int, headers: bytes, body: bytes) -> None:
        """Part of ``Reply``."""
        super().whole(status, headers, body)
        for seat in self._seats:
            seat.reply.whole(status, self._lines(headers, seat), body)

    def open(self, status: int, headers: bytes, length: bytes | None, first: bytes) -> None:
        """Part of ``Reply``."""
        super().open(status, headers, length, first)
        for seat in self._seats:
            seat.reply.open(status, self._lines(headers, seat), length, first)

    def piece(self, data: bytes) -> None:
        """Part of ``Reply``."""
        super().piece(data)
        for seat in self._seats:
            seat.reply.piece(data)
        if len(self._seats) > 1 and not self._is_slow:
            self._cut_off()

    def end(self, last: bytes = b"") -> None:
        """Part of ``Reply``."""
        super().end(last)
        for seat in self._seats:
            seat.reply.end(last)

    def break_off(self) -> None:
        """Part of ``Reply``."""
        super().break_off()
        for seat in self._seats:
            seat.reply.break_off()

    def _cut_off(self) -> None:
        """Of those that lag. Some seat keeps up, so the audience never becomes empty by it."""
        for seat in [seat for seat in self._seats if seat.is_paused and seat.reply.unsent_bytes > 2 * self._most_bytes]:
            seat.drop()

    def _lines(self, headers: bytes, seat: Seat) -> bytes:
        return headers if seat.own_lines is None else others(headers) + seat.own_lines
