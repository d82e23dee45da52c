"""A request whose prompt is being counted, before ``Path`` decides on it."""

from __future__ import annotations

from typing import Protocol

from tidegate.gateway.call import Call
from tidegate.gateway.exchange import Exchange
from tidegate.gateway.reply import Reply
from tidegate.gateway.running import Client, Running
from tidegate.gateway.shared import Shared
from tidegate.gateway.tally import Counting
from tidegate.lens.edge import Edge
from tidegate.policy.patience import client_limit
from tidegate.policy.request import Request


class Holder(Client, Protocol):
    """The connection that asked."""

    def attach(self, exchange: Running) -> None:
        """``exchange`` runs from here on."""


class Weighing:
    """Stands in the place of its exchange, and gives it up to it when the count has come, or comes too late.

    Nothing is reserved or charged meanwhile; how many may be here is bounded by ``Tally``.
    """

    __slots__ = ("_call", "_exchange", "_holder", "_is_over", "_reply", "_request", "_shared", "_task")

    def __init__(self, shared: Shared, holder: Holder, call: Call, request: Request, reply: Reply) -> None:
        self._shared = shared
        self._holder = holder
        self._call = call
        self._request = request
        self._reply = reply
        self._exchange = Exchange(shared, holder, call, request, reply)
        self._task: Counting | None = None
        self._is_over = False

    def start(self, task: Counting) -> None:
        """Wait for ``task``, which counts."""
        self._task = task
        self._shared.live.add(self)
        self._holder.attach(self)
        task.add_done_callback(self._counted)

    def _counted(self, task: Counting) -> None:
        if self._is_over:
            return
        try:
            tallied = task.result()
            if tallied is not None:
                # Slots for the longest of several prompts are enough for all of them.
                self._request.take_count(max(tallied.tokens), tallied.source)
                self._call.prompt_ids = tallied.prompt_ids
        finally:
            self._go_on()

    def _go_on(self) -> None:
        """Have it decided with what is known."""
        self._end_count()
        shared, exchange = self._shared, self._exchange
        if shared.overlengths is not None:
            shared.overlengths.fit(self._request, self._call)
        shared.live.add(exchange)
        shared.leave(self)
        self._holder.attach(exchange)
        shared.driver.offer_counted(self._request, exchange)

    def _end_count(self) -> None:
        self._is_over = True
        if self._task is not None:
            self._task.cancel()

    def tick(self, now: float) -> None:
        """Part of ``Running``."""
        if now >= client_limit(self._request):
            self._go_on()
        else:
            self._exchange.tick(now)

    def client_left(self) -> None:
        """Part of ``Running``."""
        self._end_count()
        shared, call = self._shared, self._call
        shared.leave(self)
        edge = Edge(call.request_id.decode("latin-1"), call.route.path, self._reply.status)
        shared.journal.closed(shared.driver.forgo(self._request), edge)

    def refuse_waiting(self) -> None:
        """Part of ``Running``: it was taken, so it is decided; if it would have to wait, it is refused."""
        self._go_on()
        if not self._exchange.is_over:
            self._exchange.refuse_waiting()

    def stop(self) -> None:
        """Part of ``Running``."""
        self._go_on()
        if not self._exchange.is_over:
            self._exchange.stop()

    def pause(self) -> None:
        """Part of ``Running``: the connection tells the exchange when it takes over."""

    def resume(self) -> None:
        """Part of ``Running``."""
