"""The admin port: liveness, metrics, recent requests, the view of Path, reload and drain.

Runs in the parent, so neither a scrape nor an operator holds up a stream. ``/health`` and
``/ready`` say nothing about load (R12). Everything under ``/admin`` is for operators: open on a
loopback address, behind a token elsewhere, and never for a web page of another origin.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tidegate.gateway.admin_answers import AdminAnswer, Reloaded, error_answer, outcome_answer, who_asks
from tidegate.gateway.admin_marks import MarkControl, mark_routes
from tidegate.gateway.audit import Audit
from tidegate.lens.counted import Snapshot
from tidegate.lens.explain import explain, phases_s
from tidegate.lens.exposition import ParentFacts, render
from tidegate.lens.ring import Ring
from tidegate.lens.row import Row

DEFAULT_LIMIT = 100


class Control(MarkControl, Protocol):
    """What the admin API may ask and order; the parent is one."""

    @property
    def ring(self) -> Ring:
        """Recent requests."""

    @property
    def facts(self) -> ParentFacts:
        """What the parent knows, for the metrics."""

    @property
    def audit(self) -> Audit:
        """Who changed what."""

    def unix_minus_monotonic_s(self) -> float:
        """Added to a row's times it gives Unix time."""

    def not_ready_because(self) -> str:
        """Why no request can be served now; "" when one can."""

    def config(self) -> dict[str, Any]:
        """The effective configuration, and where each value that somebody set comes from; without secrets."""

    async def view(self) -> dict[str, Any] | None:
        """``Path.view`` of this moment; None when the data process does not answer."""

    async def snapshot(self) -> Snapshot | None:
        """None when the data process does not answer."""

    async def reload(self, who: str) -> Reloaded:
        """Read the configuration again and swap it in, or keep the old one."""

    async def change(self, patch: Mapping[str, Any] | None, who: str, *, is_dry: bool) -> Reloaded:
        """Lay ``patch`` over the running configuration (None: take back all that was laid over it), or, when
        ``is_dry``, only say what that would change."""

    async def sleep(self, replica: str, on: bool, who: str) -> str:
        """Send an engine to sleep or wake it; why that was not done, "" when it was."""

    async def drain(self, replica: str, on: bool, who: str) -> bool:
        """Take a replica out of service, or back in. False: there is no such replica."""


def admin_app(control: Control, token_digests: tuple[str, ...] = ()) -> Starlette:
    """``token_digests``: SHA-256 (hex) of every token that opens ``/admin``; none: it is open."""
    admin = _Admin(control)
    guard = _Guard(token_digests)
    routes = [
        Route("/health", admin.health),
        Route("/ready", admin.ready),
        Route("/metrics", admin.metrics),
        Route("/admin/view", guard(admin.view)),
        Route("/admin/config", guard(admin.config)),
        Route("/admin/config", guard(admin.change), methods=["PATCH", "DELETE"]),
        Route("/admin/audit", guard(admin.audit)),
        Route("/admin/requests", guard(admin.requests)),
        Route("/admin/requests/{request_id:path}", guard(admin.request)),
        Route("/admin/reload", guard(admin.reload), methods=["POST"]),
        *mark_routes(control, guard),
        Route("/admin/drain", guard(admin.drain), methods=["POST"]),
        Route("/admin/replicas/{replica:path}/{order}", guard(admin.sleep), methods=["POST"]),
    ]
    return Starlette(routes=routes, exception_handlers={HTTPException: _http_error, Exception: _unexpected})


Endpoint = Callable[[Request], Awaitable[Response]]


class _Guard:
    """Lets an endpoint be reached only with a token (where tokens are set) and from no foreign page."""

    def __init__(self, token_digests: tuple[str, ...]) -> None:
        self._token_digests = token_digests

    def __call__(self, endpoint: Endpoint) -> Endpoint:
        async def guarded(request: Request) -> Response:
            return self._refusal(request) or await endpoint(request)

        return guarded

    def _refusal(self, request: Request) -> Response | None:
        origin = request.headers.get("origin")
        # A browser names the page that makes it ask; without this check any page could post to a loopback port.
        if origin is not None and origin.partition("://")[2] != request.headers.get("host"):
            return error_answer(403, f"requests from pages of {origin} are not accepted", "foreign_origin")
        if self._token_digests and not self._holds_token(request.headers.get("authorization", "")):
            message = "the admin API on this address needs 'Authorization: Bearer TOKEN'"
            return error_answer(401, message, "invalid_admin_token")
        return None

    def _holds_token(self, authorization: str) -> bool:
        scheme, _, token = authorization.partition(" ")
        digest = hashlib.sha256(token.strip().encode()).hexdigest()
        return scheme.lower() == "bearer" and any(hmac.compare_digest(digest, known) for known in self._token_digests)


class _Admin:
    """The endpoints."""

    def __init__(self, control: Control) -> None:
        self._control = control

    async def health(self, _request: Request) -> Response:
        return AdminAnswer({"status": "ok"})

    async def ready(self, _request: Request) -> Response:
        reason = self._control.not_ready_because()
        if reason:
            return error_answer(503, reason, "not_ready")
        return AdminAnswer({"status": "ready"})

    async def metrics(self, request: Request) -> Response:
        snapshot = await self._control.snapshot()
        body, content_type = render(snapshot, self._control.facts, request.headers.get("accept", ""))
        return Response(body, headers={"content-type": content_type})

    async def view(self, _request: Request) -> Response:
        view = await self._control.view()
        if view is None:
            return error_answer(503, "the data process does not answer; it may be starting again", "no_data_process")
        return AdminAnswer(view)

    async def config(self, _request: Request) -> Response:
        return AdminAnswer(self._control.config())

    async def requests(self, request: Request) -> Response:
        text = request.query_params.get("limit", str(DEFAULT_LIMIT))
        if not text.isdecimal() or int(text) < 1:
            return error_answer(400, f"limit must be a whole number of at least 1, not {text!r}", "bad_limit", "limit")
        ring = self._control.ring
        return AdminAnswer(
            {
                "requests": [self._plain(row) for row in ring.recent(int(text))],
                "kept": len(ring),
                "size": ring.size,
                "lost": ring.lost,
            }
        )

    async def request(self, request: Request) -> Response:
        request_id = request.path_params["request_id"]
        rows = self._control.ring.find(request_id)
        if not rows:
            message = (
                f"no request {request_id!r} among the last {len(self._control.ring)}; the id is the x-request-id "
                "header of its response, and only finished requests are kept"
            )
            return error_answer(404, message, "request_not_found", "request_id")
        found = [{**self._plain(row), "explanation": explain(row), "phases_s": phases_s(row)} for row in rows]
        return AdminAnswer({"requests": found})

    async def reload(self, request: Request) -> Response:
        return outcome_answer(await self._control.reload(who_asks(request)), is_dry=False)

    async def change(self, request: Request) -> Response:
        dry_run = request.query_params.get("dry_run", "0")
        if dry_run not in ("0", "1"):
            return error_answer(400, f"dry_run must be 0 or 1, not {dry_run!r}", "bad_dry_run", "dry_run")
        patch: dict[str, Any] | None = None
        if request.method == "PATCH":
            try:
                patch = msgspec.json.decode(await request.body(), type=dict[str, Any])
            except msgspec.DecodeError as error:
                message = f'send a part of the configuration as JSON, such as {{"retries": {{"ratio": 0.2}}}}: {error}'
                return error_answer(400, message, "bad_patch")
        changed = await self._control.change(patch, who_asks(request), is_dry=dry_run == "1")
        return outcome_answer(changed, is_dry=dry_run == "1")

    async def audit(self, _request: Request) -> Response:
        return AdminAnswer({"entries": self._control.audit.latest()})

    async def drain(self, request: Request) -> Response:
        replica = request.query_params.get("replica")
        on = request.query_params.get("on", "true")
        if not replica:
            return error_answer(400, "name the replica: POST /admin/drain?replica=NAME", "missing_replica", "replica")
        if on not in ("true", "false"):
            return error_answer(400, f"on must be true or false, not {on!r}", "bad_on", "on")
        if not await self._control.drain(replica, on == "true", who_asks(request)):
            message = f"no replica is called {replica!r}; see /admin/view"
            return error_answer(404, message, "replica_not_found", "replica")
        return AdminAnswer({"replica": replica, "draining": on == "true"})

    async def sleep(self, request: Request) -> Response:
        replica, order = request.path_params["replica"], request.path_params["order"]
        if order not in ("sleep", "wake"):
            return error_answer(404, f"a replica can be told to sleep or wake, not to {order}", "unknown_order")
        problem = await self._control.sleep(replica, order == "sleep", who_asks(request))
        if problem:
            return error_answer(409, problem, "not_done", "replica")
        return AdminAnswer({"replica": replica, "asleep": order == "sleep"})

    def _plain(self, row: Row) -> dict[str, Any]:
        """A row by column name, with its arrival in Unix time."""
        plain = {name: msgspec.to_builtins(getattr(row, name)) for name in row.__struct_fields__}
        return {"arrived_unix_s": row.arrived_at + self._control.unix_minus_monotonic_s(), **plain}


async def _http_error(request: Request, error: Exception) -> Response:
    if not isinstance(error, HTTPException):
        raise error
    message = f"{request.method} {request.url.path}: {error.detail}"
    return error_answer(error.status_code, message, "not_found" if error.status_code == 404 else "bad_request")


async def _unexpected(_request: Request, error: Exception) -> Response:
    return error_answer(500, f"{type(error).__name__}: {error}", "internal_error")
