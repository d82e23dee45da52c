"""Calls under an Idempotency-Key: the first is a request, the others join it or get its answer."""

from __future__ import annotations

from hashlib import sha256

from tidegate.gateway.audience import Audience
from tidegate.gateway.call import Call
from tidegate.gateway.client_connection import ClientConnection
from tidegate.gateway.intake import RejectedError
from tidegate.gateway.recording import others
from tidegate.gateway.reply import Reply
from tidegate.gateway.seat import Seat
from tidegate.gateway.shared import Shared
from tidegate.lens.edge import Edge
from tidegate.policy.idempotency import LONGEST_KEY, IdempotencyConfig, KeyedAnswers, Name, TakenError
from tidegate.policy.request import Request
from tidegate.wire.errors import Mistake
from tidegate.wire.header_names import IDEMPOTENCY_KEY, ORIGINAL_REQUEST_ID, REPLAYED, X_REQUEST_ID
from tidegate.wire.requests import Incoming

LOOK_AGAIN_S = 1.0
"""When a running request can't be joined any more, its repeat may come back; 409 is retried by the stock clients."""


class KeyedCalls:
    """Owns the audiences of requests that have a key."""

    def __init__(self, shared: Shared, config: IdempotencyConfig) -> None:
        self._shared = shared
        self.answers: KeyedAnswers[Audience] = KeyedAnswers(config)
        self._names: dict[Audience, Name] = {}
        """Of every audience whose request runs."""
        self.orphans: dict[Audience, float] = {}
        """Audiences without a client, and when the engine is told."""

    def takes(self, incoming: Incoming) -> bool:
        """The call's key counts: a GET changes nothing and needs none."""
        return self.answers.config.enabled and incoming.method != b"GET"

    def take(self, connection: ClientConnection, call: Call, request: Request, reply: Reply) -> Audience | None:
        """The audience of a new request, which is to be started; None: the call is another one's repeat, and served.

        Raises ``RejectedError`` for a key that can't be one, is taken, or belongs to what can't be joined.
        """
        incoming, now = call.incoming, request.arrived_at
        name = (request.tenant, _checked(incoming.fields[IDEMPOTENCY_KEY]))
        digest = sha256(b"%b %b\0%b" % (incoming.method, incoming.target, incoming.body)).digest()
        try:
            entry = self.answers.find(name, digest, now)
        except TakenError:
            detail = "method, path and body must be the same, byte for byte; give another request a key of its own"
            raise RejectedError(Mistake.KEY_REUSED, detail, IDEMPOTENCY_KEY.decode()) from None
        if entry is None:
            return self._open(name, digest, connection, call, request, reply)
        audience = entry.answer
        seat = Seat(audience, connection, reply, call, request)
        if entry.is_over:
            self._replay(audience, seat, now)
        elif audience.is_too_long:
            detail = f"its answer passed {self.answers.config.max_answer_bytes} bytes, and its beginning was not kept"
            raise RejectedError(Mistake.KEY_IN_USE, detail, IDEMPOTENCY_KEY.decode(), LOOK_AGAIN_S)
        else:
            self._join(audience, seat)
        return None

    def tick(self, now: float) -> None:
        """Tell the engines of those whose clients did not come back; called every ``tick_s`` while there are any."""
        is_draining = self._shared.is_draining
        for audience, until in tuple(self.orphans.items()):
            if now >= until or audience.is_too_long or is_draining:
                self._give_up(audience)

    # ---- new, running, over -----------------------------------------------------------------

    def _open(
        self, name: Name, digest: bytes, connection: ClientConnection, call: Call, request: Request, reply: Reply
    ) -> Audience:
        audience = Audience(self, call.request_id, self.answers.config.max_answer_bytes)
        self.answers.begin(name, digest, audience)
        self._names[audience] = name
        seat = Seat(audience, connection, reply, call, request)
        audience.join(seat)
        seat.take()
        return audience

    def _join(self, audience: Audience, seat: Seat) -> None:
        self.orphans.pop(audience, None)
        seat.own_lines = _own_lines(audience, seat)
        seat.take()
        audience.join(seat)

    def _replay(self, audience: Audience, seat: Seat, now: float) -> None:
        seat.own_lines = _own_lines(audience, seat) + b"%b: true\r\n" % REPLAYED
        audience.play(seat.reply, others(audience.lines) + seat.own_lines)
        self._note(audience, seat, "replayed", now)
        seat.over(now)

    # ---- as the owner of audiences ----------------------------------------------------------

    def audience_left(self, audience: Audience) -> None:
        """Part of ``audience.Owner``."""
        orphan_s = self.answers.config.orphan_s
        if orphan_s and not audience.is_too_long and not self._shared.is_draining:
            self.orphans[audience] = self._shared.driver.now() + orphan_s
        else:
            self._give_up(audience)

    def seat_left(self, audience: Audience, seat: Seat) -> None:
        """Part of ``audience.Owner``."""
        if seat.has_joined:
            self._note(audience, seat, "joined", self._shared.driver.now())

    def answer_over(self, audience: Audience, seats: list[Seat], now: float) -> None:
        """Part of ``audience.Owner``."""
        self.orphans.pop(audience, None)
        name = self._names.pop(audience)
        self.answers.end(name, audience.status, audience.size_bytes, now, is_complete=audience.is_complete)
        for seat in seats:
            if seat.has_joined:
                self._note(audience, seat, "joined", now)

    def _give_up(self, audience: Audience) -> None:
        self.orphans.pop(audience, None)
        self.answers.forget(self._names.pop(audience))
        audience.abandon()

    def _note(self, audience: Audience, seat: Seat, reuse: str, now: float) -> None:
        """A row for a call that ``Path`` never saw."""
        record = self._shared.driver.forgo(seat.request)
        record.outcome, record.closed_at = None, now
        call = seat.call
        edge = Edge(call.request_id.decode("latin-1"), call.route.path, seat.reply.status)
        edge.reuse, edge.original_id = reuse, audience.original_id.decode("latin-1")
        self._shared.journal.closed(record, edge)


def _own_lines(audience: Audience, seat: Seat) -> bytes:
    own = b"%b: %b\r\n" % (X_REQUEST_ID, seat.call.request_id)
    return own + b"%b: %b\r\n" % (ORIGINAL_REQUEST_ID, audience.original_id)


def _checked(key: bytes) -> bytes:
    """Raises ``RejectedError`` for what can't be a key."""
    key = key.strip()
    if not key or len(key) > LONGEST_KEY or not key.isascii() or not key.decode("latin-1").isprintable():
        detail = f"Idempotency-Key must be 1 to {LONGEST_KEY} printable ASCII characters, such as a UUID"
        raise RejectedError(Mistake.BAD_HEADER, detail)
    return key
