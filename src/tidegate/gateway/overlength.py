"""Prompts that are longer than the model's context: shortened, or sent to a model that takes them (SPEC S2-41).

Before ``Path`` hears of the request, so that it is charged, queued and placed as what it has become. How long a
prompt is, is known exactly only where it was counted; an estimate may be a third too low, so what is cut by an
estimate is cut to fit even then.
"""

from __future__ import annotations

import msgspec

from tidegate.errors import ProtocolError
from tidegate.gateway.beginnings import beginnings
from tidegate.gateway.call import Call
from tidegate.gateway.counting import Ratios
from tidegate.gateway.driver import Driver
from tidegate.policy.abnormal import OnOverlength, Overlength
from tidegate.policy.request import ESTIMATE_SLACK, Request
from tidegate.policy.token_source import TokenSource
from tidegate.wire.body import Body
from tidegate.wire.prompt_text import shortened_messages, shortened_prompt

TRUNCATED = "truncated_input"
ROUTED = "route_long"
"""What ``x-tidegate-degraded`` and the record say of such a request."""

EXACT_SLACK = 1.05
"""Parts of a text differ in tokens per byte."""
MOST_OUTPUT_SHARE = 4
"""For its answer a shortened prompt leaves what is wanted, but no more than one part in so many of the context."""
USUAL_OUTPUT_TOKENS = 512


class Overlengths:
    """``rules`` by upstream; upstreams without one refuse what is too long."""

    def __init__(self, rules: dict[str, Overlength], driver: Driver, ratios: Ratios) -> None:
        self._rules = rules
        self._driver = driver
        self._ratios = ratios

    def fit(self, request: Request, call: Call) -> None:
        """Make ``request`` one that fits, where its model has a rule for that and it does not fit as it is."""
        rule = self._rules.get(request.upstream)
        if rule is None or call.body is None or not call.route.is_known:
            return
        context_tokens = self._driver.context_tokens(request.upstream)
        if context_tokens is None or request.prompt_tokens + (request.max_tokens != 0) <= context_tokens:
            return
        if rule.action is OnOverlength.ROUTE_LONG and rule.long_to is not None:
            self._route(request, call, call.body, rule.long_to)
        elif rule.action is OnOverlength.TRUNCATE:
            _truncate(request, call, call.body, context_tokens)

    def _route(self, request: Request, call: Call, body: Body, long_to: str) -> None:
        request.upstream = long_to
        call.altered = ROUTED
        if not request.prompt_exact:
            request.prompt_tokens = self._ratios.tokens(long_to, body)
        elif request.counted_by is TokenSource.TOKENIZER:
            # Another model, another tokenizer.
            _forget_count(request)
        call.prompt_ids = None


def _truncate(request: Request, call: Call, body: Body, context_tokens: int) -> None:
    if body.prompts > 1 or body.prompt_tokens is not None:
        return
    wanted = USUAL_OUTPUT_TOKENS if request.max_tokens is None else request.max_tokens
    room = context_tokens - min(wanted, context_tokens // MOST_OUTPUT_SHARE)
    slack = EXACT_SLACK if request.prompt_exact else ESTIMATE_SLACK
    most_bytes = int(body.text_bytes * room / (slack * request.prompt_tokens))
    fields = body.fields
    name, raw = ("messages", bytes(fields.messages)) if bytes(fields.messages) else ("prompt", bytes(fields.prompt))
    shorter = shortened_messages(raw, most_bytes) if name == "messages" else shortened_prompt(raw, most_bytes)
    if shorter is None:
        return
    text = body.edited({name: msgspec.Raw(shorter)})
    try:
        call.body = Body(text)
    except ProtocolError:
        return
    call.incoming.body = text
    call.altered, call.prompt_ids = TRUNCATED, None
    request.prompt_tokens = max(1, int(request.prompt_tokens * call.body.text_bytes / body.text_bytes))
    _forget_count(request)
    if request.prefixes:
        request.prefixes = beginnings(call.body, request.session or request.user)


def _forget_count(request: Request) -> None:
    """What was counted is not what is sent."""
    request.prompt_exact, request.estimated_tokens = False, 0
    request.counted_tokens, request.counted_by = None, TokenSource.ESTIMATE
