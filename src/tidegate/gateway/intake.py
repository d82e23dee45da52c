"""From bytes to a request: what a client asks for, or the mistake it made."""

from __future__ import annotations

import re
from collections.abc import Callable

from tidegate.errors import ProtocolError
from tidegate.gateway.access import DEFAULT_TENANT, Access
from tidegate.gateway.beginnings import beginnings
from tidegate.gateway.call import Call
from tidegate.gateway.counting import Ratios
from tidegate.gateway.hints import TIER_CLASSES, hints
from tidegate.gateway.routes import Route
from tidegate.gateway.screening import AbnormalError, Screening
from tidegate.policy.abnormal import InputConfig
from tidegate.policy.classes import OTHER
from tidegate.policy.request import Request
from tidegate.policy.token_source import TokenSource
from tidegate.wire.body import Body
from tidegate.wire.errors import Mistake
from tidegate.wire.fields import Fields
from tidegate.wire.header_names import CONTENT_ENCODING, CONTENT_TYPE, OURS_IN, X_REQUEST_ID
from tidegate.wire.requests import Incoming

LONGEST_KEY = 128
"""Of an ``x-request-id`` or a user name that a client chose."""
MOST_SEQUENCES = 128
"""Of one prompt; OpenAI's own bound on ``n``."""

MOST_TOKENS = 2**31 - 1
"""No answer is longer. A client may write any number; ours stay within 64 bits, sums included."""

_MULTIPART_MODEL = re.compile(rb'name="model"\r\n\r\n([^\r\n]{1,200})')


class RejectedError(Exception):
    """The call never becomes a request. ``detail`` says what is wrong; ``param`` names the field; after
    ``retry_after_s`` it may be well received (None: never)."""

    def __init__(
        self, mistake: Mistake, detail: str = "", param: str | None = None, retry_after_s: float | None = None
    ) -> None:
        super().__init__(detail)
        self.mistake = mistake
        self.detail = detail
        self.param = param
        self.retry_after_s = retry_after_s


class Intake:
    """Reads calls. ``draws`` gives 64 random bits."""

    def __init__(
        self, access: Access, ratios: Ratios, models: tuple[str, ...], draws: Callable[[], int], asks_usage: bool
    ) -> None:
        self.access = access
        self.models = models
        """Public names, in the order of the configuration."""
        self.asks_usage = asks_usage
        self.class_headers: tuple[tuple[bytes, str], ...] = ()
        """Names of the headers that class rules ask for, as on the wire and as text."""
        self.images_to: dict[str, str] = {}
        """By upstream: where its requests with images go instead."""
        self.balanced: frozenset[str] = frozenset()
        """Upstreams where a request may go to one replica or another."""
        self.screening = Screening(InputConfig())
        self._ratios = ratios
        self._draws = draws

    def read(
        self, incoming: Incoming, route: Route, request_id: bytes, peer: str, number: int, now: float
    ) -> tuple[Request, Call]:
        """Raises ``RejectedError``."""
        fields, access = incoming.fields, self.access
        tenant = DEFAULT_TENANT if access.is_open else access.tenant(fields)
        if tenant is None:
            raise RejectedError(Mistake.NO_KEY)
        body = self._body(incoming, route)
        model = None if body is None else body.fields.model
        # In the order of the fields: keywords would cost half a microsecond more.
        request = Request(
            number,
            self._default_model(incoming, route, body) if model is None else model,
            now,
            self._draws(),
            1,
            False,
            None if route.generates else 0,
            1,
            len(incoming.body),
            False,
            tenant,
            None,
            access.source(peer, fields) if access.has_proxies else peer,
            None if route.is_known else OTHER,
        )
        request.path = route.path
        if self.class_headers:
            request.headers = {
                text: fields[name].decode("latin-1").strip() for name, text in self.class_headers if name in fields
            }
        call = Call(incoming, route, request_id, body)
        if X_REQUEST_ID in fields:
            request.key = request_id.decode("latin-1")
        if not OURS_IN.isdisjoint(fields):
            _take_hints(request, fields)
        if body is not None:
            if self.screening.is_on and route.is_known:
                call.input_problem = self._screened(body)
            self._take_body(request, call, body)
        return request, call

    def ask_for(self, class_headers: tuple[str, ...]) -> None:
        """The headers that class rules look at, in lower case; no others are read."""
        self.class_headers = tuple((name.encode(), name) for name in class_headers)

    def _default_model(self, incoming: Incoming, route: Route, body: Body | None) -> str:
        """The model of a call whose body, if it is JSON, names none."""
        named = _MULTIPART_MODEL.search(incoming.body) if body is None else None
        if named is not None:
            return named[1].decode("utf-8", "replace")
        # With one model there is nothing to choose; a passed-through call without any goes to the first.
        if len(self.models) == 1 or (self.models and not route.is_known):
            return self.models[0]
        raise RejectedError(Mistake.BAD_FIELD, "give the name of a model", "model")

    def _body(self, incoming: Incoming, route: Route) -> Body | None:
        if not route.takes_json and b"json" not in incoming.fields.get(CONTENT_TYPE, b""):
            return None
        if CONTENT_ENCODING in incoming.fields:
            raise RejectedError(Mistake.BAD_JSON, "send it without Content-Encoding")
        try:
            return Body(incoming.body)
        except ProtocolError as error:
            if route.is_known:
                found = self.screening.words_for(incoming.body, str(error))
                raise RejectedError(found.mistake, found.detail) from None
            return None

    def _screened(self, body: Body) -> str:
        """The mark on a request that is passed on all the same."""
        try:
            return self.screening.look(body)
        except AbnormalError as found:
            raise RejectedError(found.mistake, found.detail, found.param) from None

    def _take_body(self, request: Request, call: Call, body: Body) -> None:
        fields = body.fields
        if body.images and self.images_to:
            request.upstream = self.images_to.get(request.upstream, request.upstream)
        request.streaming = fields.stream is True
        request.prompt_tokens = self._ratios.tokens(request.upstream, body)
        if body.prompt_tokens is not None:
            request.prompt_exact, request.counted_by = True, TokenSource.CLIENT
        request.prompts = body.prompts
        bound = fields.max_tokens if fields.max_completion_tokens is None else fields.max_completion_tokens
        if bound is None:
            bound = fields.max_output_tokens
        # llama.cpp's clients write -1 for "no bound".
        if bound is not None and bound >= 0:
            request.max_tokens = bound if bound < MOST_TOKENS else MOST_TOKENS
        if call.route.generates:
            request.sequences = _answers(fields) * body.prompts if fields.n or fields.best_of else body.prompts
        if fields.service_tier is not None and request.class_hint is None:
            request.class_hint = TIER_CLASSES.get(fields.service_tier)
        if fields.user:
            request.user = fields.user[:LONGEST_KEY]
        if request.upstream in self.balanced:
            request.prefixes = beginnings(body, request.session or request.user)
        call.asks_usage = self.asks_usage and request.streaming and not _includes_usage(fields)


def _take_hints(request: Request, fields: dict[bytes, bytes]) -> None:
    try:
        hint = hints(fields)
    except ValueError as error:
        raise RejectedError(Mistake.BAD_HEADER, str(error)) from None
    if hint.deadline_s is not None:
        request.deadline_at = request.arrived_at + hint.deadline_s
    if hint.first_byte_s is not None:
        request.first_byte_by = request.arrived_at + hint.first_byte_s
    request.class_hint = hint.service_class or request.class_hint
    request.session = hint.session


def _answers(fields: Fields) -> int:
    """How many answers are wanted to each prompt."""
    wanted = max(1, fields.n or 1, fields.best_of or 1)
    if wanted > MOST_SEQUENCES:
        raise RejectedError(Mistake.BAD_FIELD, f"at most {MOST_SEQUENCES} answers at a time", "n")
    return wanted


def _includes_usage(fields: Fields) -> bool:
    return bool(fields.stream_options and fields.stream_options.get("include_usage"))
