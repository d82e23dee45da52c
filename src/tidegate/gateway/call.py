"""One call as it goes to an engine, whichever engine that turns out to be."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from msgspec import Raw

from tidegate.gateway.continuation import Continuation
from tidegate.gateway.hints import deadline_lines
from tidegate.gateway.pool import Pool
from tidegate.gateway.routes import COMPLETIONS, Route
from tidegate.gateway.simplifying import altered
from tidegate.policy.decisions import Alteration
from tidegate.wire.body import Body
from tidegate.wire.header_names import AUTHORIZATION, CONNECTION, NOT_FORWARDED
from tidegate.wire.requests import Incoming


class Call:
    """Made by ``Intake``; kept until the answer is complete, since an attempt may be repeated."""

    __slots__ = (
        "_forwarded",
        "altered",
        "asks_usage",
        "body",
        "continuation",
        "ids_go_to",
        "incoming",
        "input_problem",
        "prompt_ids",
        "request_id",
        "route",
    )

    def __init__(self, incoming: Incoming, route: Route, request_id: bytes, body: Body | None) -> None:
        self.incoming = incoming
        self.route = route
        self.request_id = request_id
        self.body = body
        """None when it is no JSON object, or there is none."""
        self.altered = ""
        """What was done to a prompt that was too long: a label for the client and the record; "" for nothing."""
        self.input_problem = ""
        """The mark on a request that is passed on though something is wrong with it."""
        self.asks_usage = False
        """Write ``stream_options.include_usage`` where the client did not."""
        self.prompt_ids: bytes | None = None
        """JSON list of token ids that means the same as the prompt's text at the replicas ``ids_go_to``."""
        self.ids_go_to: Container[str] = ()
        self.continuation: Continuation | None = None
        """What is kept of a stream so that another replica can go on with it; None where none may."""
        lines = b""
        dropped = NOT_FORWARDED
        if CONNECTION in incoming.fields:
            # RFC 9110 section 7.6.1: what Connection names belongs to the connection too.
            dropped = dropped | {name.strip() for name in incoming.fields[CONNECTION].lower().split(b",")}
        for header in incoming.headers:
            if header[0] not in dropped:
                lines += b"%b: %b\r\n" % header
        self._forwarded = lines

    @property
    def has_text_prompt(self) -> bool:
        """A completion of one text, in the place of which ids could stand."""
        return self.route is COMPLETIONS and self.body is not None and bytes(self.body.fields.prompt).startswith(b'"')

    @property
    def may_be_gathered(self) -> bool:
        """One whole text, which can as well be asked for as a stream and put together here."""
        body, text = self.body, self.incoming.body
        if body is None or not self.route.generates or body.prompts > 1:
            return False
        fields = body.fields
        # Tool calls come in pieces that are joined by other rules, and llama.cpp streams no log-probabilities of them.
        is_plain = b'"tools"' not in text and b'"functions"' not in text
        return is_plain and not fields.stream and (fields.n or 1) == 1 and (fields.best_of or 1) == 1

    def bytes_for(self, pool: Pool, alteration: Alteration | None, service_class: str, left_s: float | None) -> bytes:
        """The whole request for this replica: model name, token bound, priority and credentials are its own.

        ``left_s``: until the client's deadline, which the engine is told; None: it named none.
        """
        incoming = self.incoming
        kept = self.continuation
        if kept is not None and kept.count:
            alteration = kept.alteration
        body, target = self._body_for(pool, alteration, service_class), incoming.target
        if kept is not None:
            body, target = kept.body(body), kept.path or target
        headers = self._forwarded
        if pool.endpoint.is_passthrough and AUTHORIZATION in incoming.fields:
            headers += b"authorization: %b\r\n" % incoming.fields[AUTHORIZATION]
        if left_s is not None:
            headers += deadline_lines(left_s, incoming.fields)
        if body or incoming.method != b"GET":
            headers += b"content-length: %d\r\n" % len(body)
        return b"%b %b%b HTTP/1.1\r\n%bx-request-id: %b\r\n%b\r\n%b" % (
            incoming.method,
            pool.prefix,
            target,
            pool.own_headers,
            self.request_id,
            headers,
            body,
        )

    def _body_for(self, pool: Pool, alteration: Alteration | None, service_class: str) -> bytes:
        body = self.body
        if body is None:
            return self.incoming.body
        changes: dict[str, Any] = {}
        model = pool.endpoint.model
        if model is not None and model != body.fields.model:
            changes["model"] = model
        if alteration is not None and self.route.is_known and self.route.generates:
            changes |= altered(body, alteration)
        if self.route.is_known:
            is_gathered = pool.gathers and self.may_be_gathered
            if is_gathered:
                changes["stream"] = True
            if self.asks_usage or is_gathered:
                changes["stream_options"] = {**(body.fields.stream_options or {}), "include_usage": True}
            if self.prompt_ids is not None and pool.endpoint.name in self.ids_go_to:
                changes["prompt"] = Raw(self.prompt_ids)
            if pool.priorities and self.route.generates:
                _set_priority(changes, body, pool.priorities.get(service_class, 0))
        if self.continuation is not None:
            changes |= self.continuation.asks
        return body.edited(changes) if changes else self.incoming.body


def _set_priority(changes: dict[str, Any], body: Body, priority: int) -> None:
    # 0 is what vLLM takes for granted; a client's own word must not put it before others.
    if priority or body.fields.priority:
        changes["priority"] = priority
