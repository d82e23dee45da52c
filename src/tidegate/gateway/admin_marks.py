"""``/admin/marks``: which keys are held back, and holding one back or letting it go, for operators and the lens.

GET    /admin/marks                every mark, with its key as it is
PUT    /admin/marks                {"kind", "key", "ttl_s", "reason", "evidence"}; POST does the same
DELETE /admin/marks/{kind}/{key}   takes one away
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Protocol

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tidegate.gateway.admin_answers import AdminAnswer, Reloaded, error_answer, outcome_answer, who_asks
from tidegate.gateway.messages import LiftMark, SetMark
from tidegate.policy.marks import MOST_TTL_S, MarkKind

LONGEST_KEY = 256
LONGEST_REASON = 40
LONGEST_EVIDENCE = 500
DEFAULT_TTL_S = 600.0


class MarkOrder(msgspec.Struct, forbid_unknown_fields=True):
    """The body of a PUT."""

    kind: MarkKind
    key: str
    ttl_s: float = DEFAULT_TTL_S
    reason: str = "blocked"
    evidence: str = "asked for by an operator"


class MarkControl(Protocol):
    """What these endpoints may ask and order."""

    async def marks(self) -> list[dict[str, Any]] | None:
        """Every mark; None when the data process does not answer."""

    async def mark(self, order: SetMark | LiftMark, who: str) -> Reloaded:
        """Set or lift one."""


Endpoint = Callable[[Request], Awaitable[Response]]


def mark_routes(control: MarkControl, guard: Callable[[Endpoint], Endpoint]) -> list[Route]:
    """The endpoints, each behind ``guard``."""
    marks = _Marks(control)
    return [
        Route("/admin/marks", guard(marks.listed)),
        Route("/admin/marks", guard(marks.put), methods=["PUT", "POST"]),
        Route("/admin/marks/{kind}/{key:path}", guard(marks.delete), methods=["DELETE"]),
    ]


class _Marks:
    def __init__(self, control: MarkControl) -> None:
        self._control = control

    async def listed(self, _request: Request) -> Response:
        marks = await self._control.marks()
        if marks is None:
            return error_answer(503, "the data process does not answer; it may be starting again", "no_data_process")
        return AdminAnswer({"marks": marks})

    async def put(self, request: Request) -> Response:
        try:
            order = msgspec.json.decode(await request.body(), type=MarkOrder)
        except msgspec.DecodeError as error:
            example = '{"kind": "session", "key": "abc", "ttl_s": 60, "reason": "abuse", "evidence": "ticket 7"}'
            return error_answer(400, f"send a mark as JSON, such as {example}: {error}", "bad_mark")
        problem = mistake_of(order)
        if problem:
            return error_answer(400, problem, "bad_mark")
        mark = SetMark(order.kind, order.key, order.ttl_s, order.reason, order.evidence)
        return outcome_answer(await self._control.mark(mark, who_asks(request)), is_dry=False)

    async def delete(self, request: Request) -> Response:
        kind, key = request.path_params["kind"], request.path_params["key"]
        if kind not in [each.value for each in MarkKind]:
            return error_answer(404, f"marks are on {_kinds()}, not on a {kind}", "unknown_kind", "kind")
        done = await self._control.mark(LiftMark(MarkKind(kind), key), who_asks(request))
        if not done.changes and not done.problems:
            return error_answer(404, f"no mark is on {kind} {key!r}; see GET /admin/marks", "mark_not_found", "key")
        return outcome_answer(done, is_dry=False)


def mistake_of(order: MarkOrder) -> str:
    """What is wrong with an order, in words; "" when nothing is. Its texts go into log lines and to clients."""
    for name, text, longest in (
        ("key", order.key, LONGEST_KEY),
        ("reason", order.reason, LONGEST_REASON),
        ("evidence", order.evidence, LONGEST_EVIDENCE),
    ):
        if not 0 < len(text) <= longest or not text.isprintable():
            return f"{name} must be 1 to {longest} printable characters"
    if not 0.0 < order.ttl_s <= MOST_TTL_S:
        return f"ttl_s must lie above 0 and at most at {MOST_TTL_S:.0f}: no mark lasts longer than a day"
    return ""


def _kinds() -> str:
    return ", ".join(kind.value for kind in MarkKind)
