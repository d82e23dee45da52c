"""Walks the ladder for one request: from a refusal, or from a wait that is too long, to what it gets instead.

What a rung finds is told as a ``Step`` and is placed by ``Path``. Nothing is taken before it is known that the rung
holds: the request's deadline and its tenant's quota count as for any other, if they were not asked yet. A request
that comes to another model's queue keeps its ticket and never passes those who stand there already.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass

from tidegate.policy import entry
from tidegate.policy.decisions import Alteration, Answer, Reason, Refuse
from tidegate.policy.ladder import FINAL, Ladder, LadderConfig, Rung, SimplifyConfig
from tidegate.policy.marks import MarkKind, Marks
from tidegate.policy.quota import Quota
from tidegate.policy.record import Record
from tidegate.policy.replica import Replica
from tidegate.policy.request import NEVER, Request
from tidegate.policy.ticket import Ticket
from tidegate.policy.upstream import Upstream
from tidegate.policy.waiting import Waiting

QUIET_S = 30.0
"""A rung that was last used for a key so long ago is told again when it is used."""
MOST_TOLD = 1_000
ACTIONS = {Rung.CACHE: "cache_fallback", Rung.LIGHT: "light_model", Rung.ERROR: "error_response"}
"""As the log names them (SPEC S0-48, S0-52); any other by its own name."""
SCOPES = {MarkKind.SOURCE: "user_ip"}

_CACHE, _SIMPLIFY, _LIGHT, _ERROR = Rung.CACHE, Rung.SIMPLIFY, Rung.LIGHT, Rung.ERROR
_WITH_ENGINES = (Rung.SIMPLIFY, Rung.LIGHT, Rung.STANDBY)
_MARKED, _QUOTA = Reason.MARKED, Reason.QUOTA


@dataclass(slots=True)
class Step:
    """A rung that holds: go there."""

    upstream: Upstream
    place: Replica | Ticket
    """Where it runs at once, or how it waits."""
    output_tokens: int


class Descent:
    """Owned by ``Path``."""

    __slots__ = ("_told", "ladder", "marks", "quota", "waiting")

    def __init__(self, ladder: Ladder, marks: Marks, quota: Quota, waiting: Waiting) -> None:
        self.ladder = ladder
        self.marks = marks
        self.quota = quota
        self.waiting = waiting
        self._told: OrderedDict[tuple[Rung, str, str], float] = OrderedDict()

    def descend(
        self,
        record: Record,
        refusal: Refuse,
        upstreams: Mapping[str, Upstream],
        now: float,
        *,
        ticket_id: int = 0,
        may_wait: bool = True,
    ) -> Answer | Step | Refuse:
        """What a request gets in the place of ``refusal``, which may be that. ``ticket_id``: it has stood in a queue
        under this number. ``may_wait``: it may stand in another one."""
        config = self.ladder.of(record.model)
        if not config.enabled or refusal.reason in FINAL:
            return refusal
        # What a tenant may use is agreed with it, and no overload that somebody else's engine could help with.
        is_quota = refusal.reason is _QUOTA
        for rung in config.order:
            if rung in record.rungs or (is_quota and rung in _WITH_ENGINES):
                continue
            if rung is not _ERROR:
                record.rungs += (rung,)
            found = self._try(rung, config, record, upstreams, now, ticket_id, may_wait)
            if found is not None:
                if isinstance(found, Answer):
                    found.reason = refusal.reason
                self._tell(rung, record, refusal, now)
                return found
        self._tell(_ERROR, record, refusal, now)
        return refusal

    def next_to_lighten(self, upstream: Upstream, upstreams: Mapping[str, Upstream], now: float) -> Ticket | None:
        """Who should go from this queue to the lighter model, if that has room."""
        relief = upstream.relief
        if relief is None or not relief.wants(upstream.wait_s(now)):
            return None
        light = upstreams.get(relief.config.light_model or "")
        return None if light is None or not light.is_open_for(relief.config.light_wait_s, now) else relief.longest()

    def lighten(self, record: Record, ticket_id: int, upstreams: Mapping[str, Upstream], now: float) -> Step | None:
        """The lighter model, for one that is not refused; None: it is no help now. ``ticket_id``: it waits under this
        number, or has just come (0)."""
        config = self.ladder.of(record.model)
        if _LIGHT in record.rungs:
            return None
        step = self._other(_LIGHT, config, record, upstreams, now, ticket_id, may_wait=True)
        if step is not None:
            record.rungs += (_LIGHT,)
            self._tell(_LIGHT, record, None, now)
        return step

    # ---- the rungs --------------------------------------------------------------------------

    def _try(
        self,
        rung: Rung,
        config: LadderConfig,
        record: Record,
        upstreams: Mapping[str, Upstream],
        now: float,
        ticket_id: int,
        may_wait: bool,
    ) -> Answer | Step | None:
        if rung is _CACHE:
            answer = self.ladder.stored(config, record.request, now)
            if answer is not None:
                record.degraded = answer.degraded = _CACHE.value
            return answer
        if rung is _SIMPLIFY:
            return self._simplified(config.simplify, record, upstreams, now, has_waited=ticket_id > 0)
        return self._other(rung, config, record, upstreams, now, ticket_id, may_wait)

    def _simplified(
        self,
        config: SimplifyConfig,
        record: Record,
        upstreams: Mapping[str, Upstream],
        now: float,
        *,
        has_waited: bool,
    ) -> Step | None:
        """The same model, at once, for less output. Who has just come does not pass those who wait."""
        request = record.request
        upstream, most = upstreams.get(request.upstream), request.max_tokens
        if upstream is None or upstream.reserved_output(request) <= config.max_tokens:
            return None
        if not (has_waited or upstream.queue.requests == 0 or upstream.queue.lets_pass(now)):
            return None
        request.max_tokens = config.max_tokens
        replica = upstream.choose(request, config.max_tokens, now, record.replica)
        if isinstance(replica, Replica) and self._goes(record, upstream, config.max_tokens, now):
            record.degraded = _SIMPLIFY.value
            record.alteration = Alteration(config.max_tokens, config.drop_tools, config.keep_messages)
            return Step(upstream, replica, config.max_tokens)
        request.max_tokens = most
        return None

    def _other(
        self,
        rung: Rung,
        config: LadderConfig,
        record: Record,
        upstreams: Mapping[str, Upstream],
        now: float,
        ticket_id: int,
        may_wait: bool,
    ) -> Step | None:
        """Another upstream, at once or after a wait that is short enough."""
        target, request = upstreams.get(config.target(rung) or ""), record.request
        if target is None or target.name == request.upstream or self._is_barred(target, request, now):
            return None
        served_by, request.upstream = request.upstream, target.name
        most_wait_s = config.light_wait_s if rung is _LIGHT else NEVER
        step = self._place_in(target, record, now, ticket_id, most_wait_s, may_wait)
        if step is None:
            request.upstream = served_by
        else:
            record.degraded, record.alteration = rung.value, None
        return step

    def _is_barred(self, target: Upstream, request: Request, now: float) -> bool:
        if self.marks.on_clients and self.marks.find(MarkKind.MODEL, target.name, now) is not None:
            return True
        return entry.validity(request, target, target.reserved_output(request)) is not None

    def _place_in(
        self,
        target: Upstream,
        record: Record,
        now: float,
        ticket_id: int,
        most_wait_s: float,
        may_wait: bool,
    ) -> Step | None:
        request, output_tokens = record.request, target.reserved_output(record.request)
        if target.queue.requests == 0 or target.queue.lets_pass(now):
            replica = target.choose(request, output_tokens, now)
            if isinstance(replica, Replica):
                goes = self._goes(record, target, output_tokens, now)
                return Step(target, replica, output_tokens) if goes else None
        if not may_wait or not target.is_open_for(most_wait_s, now) or not self._pays(record, output_tokens, now):
            return None
        ticket = self.waiting.enter(record, target, now, ticket_id)
        return None if isinstance(ticket, Refuse) else Step(target, ticket, output_tokens)

    def _goes(self, record: Record, upstream: Upstream, output_tokens: int, now: float) -> bool:
        return self.waiting.comes_in_time(record, upstream, now) and self._pays(record, output_tokens, now)

    def _pays(self, record: Record, output_tokens: int, now: float) -> bool:
        """What entry did not come to ask: the deadline and the quota; and the charge."""
        if record.charged_tokens is not None:
            return True
        request = record.request
        if entry.deadline(request, now) or entry.quota(self.quota, request, output_tokens, now):
            return False
        entry.charge(self.quota, record, output_tokens, now)
        return True

    # ---- what is told -----------------------------------------------------------------------

    def _tell(self, rung: Rung, record: Record, refusal: Refuse | None, now: float) -> None:
        """A line for the log when a rung comes into use for a key, and not for every request (SPEC S0-52)."""
        scope, key = "model", record.model
        mark = self.marks.on(record.request, now) if refusal is not None and refusal.reason is _MARKED else None
        if mark is not None:
            scope, key = SCOPES.get(mark.kind, mark.kind.value), self.marks.shown(mark.kind, mark.key)
        elif rung is _ERROR:
            # A refusal for lack of room is no switch to anything; its counts and its record tell of it.
            return
        told = (rung, scope, key)
        before = self._told.pop(told, None)
        if before is None and len(self._told) >= MOST_TOLD:
            self._told.popitem(last=False)
        self._told[told] = now
        if before is None or now - before > QUIET_S:
            action = ACTIONS.get(rung, rung.value)
            self.marks.notices.add("degraded", f"[DEGRADED] Switching to {action} for {scope}: {key}", "warning")
