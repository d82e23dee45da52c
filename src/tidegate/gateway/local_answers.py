"""What the API's port answers without an engine: health, readiness, the list of models, and mistakes."""

from __future__ import annotations

import os
from dataclasses import dataclass
from itertools import count

import msgspec

from tidegate.gateway.access import Access
from tidegate.gateway.client_connection import ClientConnection
from tidegate.gateway.error_answer import RESTART_S
from tidegate.gateway.health_body import CACHE_LINES, health_body
from tidegate.gateway.health_body import PREFIX as HEALTH_PREFIX
from tidegate.gateway.intake import LONGEST_KEY, RejectedError
from tidegate.gateway.reply import JSON_LINE, Reply, header_lines
from tidegate.gateway.shared import Shared
from tidegate.lens.edge import Edge
from tidegate.policy.decisions import Reason
from tidegate.wire.errors import MISTAKES, REFUSALS, Mistake, retry_headers
from tidegate.wire.header_names import REASON, X_REQUEST_ID
from tidegate.wire.requests import Incoming


@dataclass(slots=True)
class OwnAnswer:
    """A JSON body and what goes with it."""

    status: int
    body: bytes
    code: str = ""
    """Of an error; empty for any other answer."""
    lines: bytes = b""
    """Further header lines, each ended."""
    retry_after_s: float | None = None
    """When a call that got an error may be well received; None: never."""
    is_recorded: bool = True
    """It becomes a row."""

    def header_lines(self, request_id: bytes) -> bytes:
        """All of them, each ended."""
        lines = JSON_LINE + b"x-request-id: %b\r\n" % request_id + self.lines
        if self.code:
            lines += b"%b: %b\r\n" % (REASON, self.code.encode()) + header_lines(retry_headers(self.retry_after_s))
        return lines


class LocalAnswers:
    """Answers, and numbers every call whoever answers it."""

    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self._numbers = count(1)
        self._id_prefix = os.urandom(6).hex().encode()
        self._down: set[str] = set()
        """Replicas whose last reading was not ready."""
        self._access = Access((), ())
        self._models: tuple[str, ...] = ()

    def serve(self, access: Access, models: tuple[str, ...]) -> None:
        """Who may ask, and the public names of the models, from here on."""
        self._access = access
        self._models = models

    # ---- every call -------------------------------------------------------------------------

    def next_number(self) -> int:
        """Of a call that is none of a client's."""
        return next(self._numbers)

    def number(self, incoming: Incoming) -> tuple[int, bytes]:
        """The call's number in this process, and the id under which its answer goes out."""
        number = next(self._numbers)
        return number, incoming.fields.get(X_REQUEST_ID, b"")[:LONGEST_KEY] or b"%b-%x" % (self._id_prefix, number)

    def reply(self, connection: ClientConnection, incoming: Incoming) -> Reply:
        """Where the answer is written."""
        if connection.transport is None:
            raise ConnectionError("the client left before its request was read")
        keeps_alive = incoming.keeps_alive and not self._shared.is_draining
        return Reply(connection.transport, incoming.is_http10, keeps_alive)

    # ---- answers ----------------------------------------------------------------------------

    def take(self, connection: ClientConnection, incoming: Incoming, path: bytes) -> None:
        """Answer a call for ``path``, which goes to no engine. Raises ``RejectedError``."""
        if path in (b"/health", b"/ready"):
            problem = "" if path == b"/health" else self.not_ready_because
            is_fine = not problem
            body = msgspec.json.encode({"status": problem or "ok"})
            need_get(incoming)
            self.give(connection, incoming, OwnAnswer(200 if is_fine else 503, body, is_recorded=False))
            return
        is_health = path.startswith(HEALTH_PREFIX)
        if not is_health and not path.startswith(b"/v1/models"):
            raise RejectedError(Mistake.NO_ROUTE, "the API is under /v1")
        need_get(incoming)
        if self._access.tenant(incoming.fields) is None:
            raise RejectedError(Mistake.NO_KEY)
        body, code = health_body(self._shared.driver, path) if is_health else self._models_answer(path)
        lines = CACHE_LINES if is_health and not code else b""
        self.give(connection, incoming, OwnAnswer(404 if code else 200, body, code, lines, is_recorded=bool(code)))

    def _models_answer(self, path: bytes) -> tuple[bytes, str]:
        """Public names, and how long a conversation may be: what they stand for is nobody's business (S3-16)."""
        name = path.removeprefix(b"/v1/models").strip(b"/").decode("utf-8", "replace")
        if not name:
            listed = [self._model_entry(each) for each in self._models]
            return msgspec.json.encode({"object": "list", "data": listed}), ""
        if name in self._models:
            return msgspec.json.encode(self._model_entry(name)), ""
        reason = Reason.UNKNOWN_MODEL
        return REFUSALS[reason].body(reason.value, param="model"), reason.value

    def _model_entry(self, name: str) -> dict[str, object]:
        """The context stands under vLLM's name for it, where clients and load tools look."""
        entry: dict[str, object] = {"id": name, "object": "model", "created": 0, "owned_by": "tidegate"}
        context_tokens = self._shared.driver.context_tokens(name)
        return entry if context_tokens is None else {**entry, "max_model_len": context_tokens}

    def refuse(self, connection: ClientConnection, incoming: Incoming, reason: Reason) -> None:
        """Refuse a call before it is a request."""
        error = REFUSALS[reason]
        answer = OwnAnswer(error.status, error.body(reason.value), reason.value, retry_after_s=RESTART_S)
        self.give(connection, incoming, answer)

    def rejected(self, connection: ClientConnection, incoming: Incoming, error: RejectedError) -> None:
        """Say what is wrong with a call."""
        self.give(connection, incoming, of_mistake(error))

    def unreadable(self, connection: ClientConnection, mistake: Mistake, detail: str, status: int) -> None:
        """Answer bytes that are no request; the connection can carry nothing more."""
        incoming = Incoming(b"", b"", [])
        incoming.keeps_alive = False
        body = MISTAKES[mistake].body(mistake.value, detail)
        self.give(connection, incoming, OwnAnswer(status, body, mistake.value))

    def give(self, connection: ClientConnection, incoming: Incoming, answer: OwnAnswer) -> None:
        """Send ``answer``."""
        reply = self.reply(connection, incoming)
        reply.omits_body = incoming.method == b"HEAD"
        number, request_id = self.number(incoming)
        reply.whole(answer.status, answer.header_lines(request_id), answer.body)
        now = self._shared.driver.now()
        if answer.is_recorded:
            path = path_of(incoming.target)[:128].decode("latin-1")
            edge = Edge(request_id.decode("latin-1"), path, answer.status, answer.code)
            self._shared.journal.rejected(edge, number, now, now, len(incoming.body))
        if incoming.method:
            connection.exchange_over(reply.keeps_alive, now)

    # ---- readiness --------------------------------------------------------------------------

    @property
    def not_ready_because(self) -> str:
        """Why a balancer should send new requests elsewhere; "" when they are welcome."""
        if self._shared.is_draining:
            return "draining"
        return "" if self._shared.pools.keys() - self._down else "no replica is ready"

    def note_reading(self, replica: str, *, is_ready: bool) -> None:
        """What the last look at a replica showed; one that was never looked at counts as ready."""
        if is_ready:
            if replica in self._down:
                self._shared.tally.exactness.look_again(replica)
            self._down.discard(replica)
        else:
            self._down.add(replica)


def of_mistake(error: RejectedError) -> OwnAnswer:
    """What is said to a call with a mistake in it."""
    mistake, code = MISTAKES[error.mistake], error.mistake.value
    body = mistake.body(code, error.detail, error.param)
    return OwnAnswer(mistake.status, body, code, retry_after_s=error.retry_after_s)


def need_get(incoming: Incoming) -> None:
    """Raises ``RejectedError`` for a call that would change something here."""
    if incoming.method not in (b"GET", b"HEAD"):
        raise RejectedError(Mistake.WRONG_METHOD, "use GET")


def path_of(target: bytes) -> bytes:
    """Without the query, and without the scheme and authority of the absolute form."""
    if not target.startswith(b"/"):
        rest = target.partition(b"://")[2]
        target = b"/" + rest.partition(b"/")[2] if rest else target
    return target.partition(b"?")[0]
