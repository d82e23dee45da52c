"""One client in an audience, as its connection sees it."""

from __future__ import annotations

from typing import Protocol

from tidegate.gateway.call import Call
from tidegate.gateway.reply import Reply
from tidegate.gateway.weighing import Holder
from tidegate.policy.request import Request


class Hall(Protocol):
    """Where it sits; an audience is one."""

    def keep_pace(self) -> None:
        """A client became slow, or keeps up again."""

    def leave(self, seat: Seat) -> None:
        """The client is gone."""


class Seat:
    """Stands in the place of an exchange with ``holder``, usually a connection; the exchange is the audience's."""

    __slots__ = ("_hall", "_holder", "call", "is_paused", "own_lines", "reply", "request")

    def __init__(self, hall: Hall, holder: Holder, reply: Reply, call: Call, request: Request) -> None:
        self._hall: Hall | None = hall
        self._holder = holder
        self.reply = reply
        self.call = call
        self.request = request
        self.own_lines: bytes | None = None
        """Header lines of a client that joined; None: the answer's own are meant for this one."""
        self.is_paused = False

    @property
    def has_joined(self) -> bool:
        """It came later than the first."""
        return self.own_lines is not None

    def take(self) -> None:
        """From here on the connection tells it when its client is slow or gone."""
        self._holder.attach(self)

    def over(self, now: float) -> None:
        """The answer is sent; the connection goes on with its next request."""
        self._hall = None
        self._holder.exchange_over(self.reply.keeps_alive, now)

    def drop(self) -> None:
        """End its connection: what follows would have to be kept for it alone."""
        hall, self._hall = self._hall, None
        self.reply.break_off()
        if hall is not None:
            hall.leave(self)

    # ---- as a Running -----------------------------------------------------------------------

    def pause(self) -> None:
        """Part of ``Running``."""
        self.is_paused = True
        if self._hall is not None:
            self._hall.keep_pace()

    def resume(self) -> None:
        """Part of ``Running``."""
        self.is_paused = False
        if self._hall is not None:
            self._hall.keep_pace()

    def client_left(self) -> None:
        """Part of ``Running``."""
        hall, self._hall = self._hall, None
        if hall is not None:
            hall.leave(self)

    def tick(self, now: float) -> None:
        """Part of ``Running``: the exchange looks at the clock."""

    def refuse_waiting(self) -> None:
        """Part of ``Running``: the exchange is told."""

    def stop(self) -> None:
        """Part of ``Running``: the exchange is told."""
