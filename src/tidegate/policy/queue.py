"""The waiting requests of one upstream: three bounds, one line per class, one order between lines.

Bounds (R10) count requests, prompt tokens and body bytes; a class may fill its ``queue_share`` of
each. Between lines, the one with the least dispatched work ÷ weight goes next (start-time fair
queueing, research: VTC 2401.00588; of equals the heavier). A line that comes back from idle is
lifted to the least of the busy ones, and all begin anew when the queue was empty, so that none can
spend credit it gathered while absent. Inside a line, see there. A class that yields has its turn only
while no other waits. When the next ticket does not fit anywhere, the other lines may pass it, at most
``max_overtakes`` times; then the queue waits for it, so a large request cannot starve.

Giants that are held for a quiet replica stand aside, in a line of their own that everybody passes.
When their time has come they go first.
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heappop, heappush

from tidegate.policy.classes import INTERACTIVE, ClassConfig, ClassesConfig
from tidegate.policy.decisions import Reason
from tidegate.policy.line import Charge, Line
from tidegate.policy.request import Request
from tidegate.policy.tenants import TenantsConfig
from tidegate.policy.ticket import Ticket


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueConfig:
    max_requests: int = 2000
    """S0-30: about twice the peak rate of requests a second."""
    max_tokens: int = 2_000_000
    max_bytes: int = 256 * 1024 * 1024
    max_overtakes: int = 32

    def __post_init__(self) -> None:
        if min(self.max_requests, self.max_tokens, self.max_bytes) < 1 or self.max_overtakes < 0:
            raise ValueError(f"every bound of the queue must be at least 1, max_overtakes at least 0: {self}")


class Queue:
    __slots__ = ("_classes", "_expiry", "bytes", "config", "giants", "lines", "requests", "tokens")

    def __init__(self, config: QueueConfig, classes: ClassesConfig, tenants: TenantsConfig) -> None:
        self.config = config
        self._classes = classes.classes
        self.lines = {name: Line(c.weight, tenants) for name, c in classes.classes.items()}
        self.giants = Line(1.0, tenants)
        """Held for a quiet replica."""
        self.requests = 0
        self.tokens = 0
        self.bytes = 0
        self._expiry: list[tuple[float, int, Ticket]] = []

    def has_room(self, request: Request, service_class: str) -> Reason | None:
        config, line = self.config, self.lines[service_class]
        share = self._classes[service_class].queue_share
        if self.requests >= config.max_requests or line.requests >= config.max_requests * share:
            return Reason.QUEUE_FULL
        tokens = request.prompt_tokens
        if self.tokens + tokens > config.max_tokens or line.tokens + tokens > config.max_tokens * share:
            return Reason.QUEUE_TOKENS
        size = request.body_bytes
        if self.bytes + size > config.max_bytes or line.bytes + size > config.max_bytes * share:
            return Reason.QUEUE_BYTES
        return None

    def owed_tokens_per_s(self, service_class: str, now: float) -> float | None:
        """What a line lets go, as measured while somebody stood in it, but no more than the class is owed of what all
        lines let go that wait now: it may have had the others' part while they were away. None where too little was
        measured."""
        line = self.lines[service_class]
        rate = line.tokens_per_s(now)
        if rate is None or line.requests == self.requests:
            return rate
        every, weight = rate, line.weight
        for other in self.lines.values():
            theirs = other.tokens_per_s(now) if other.requests and other is not line else None
            if theirs is not None:
                every, weight = every + theirs, weight + other.weight
        return min(rate, every * line.weight / weight)

    def lets_pass(self, now: float) -> bool:
        """Whether a newcomer finds nobody who should go before it."""
        if self.requests != self.giants.requests:
            return False
        giant = self.giants.head()
        return giant is None or now < giant.held_until

    def enter(self, ticket: Ticket, now: float) -> None:
        line = self._line_of(ticket)
        if line is not self.giants:
            if self.requests == self.giants.requests:
                for each in self.lines.values():
                    each.work = 0.0
            elif line.requests == 0:
                line.work = max(line.work, min(each.work for each in self.lines.values() if each.requests))
        line.enter(ticket, now)
        self._count(ticket, 1)
        heappush(self._expiry, (ticket.expires_at, ticket.id, ticket))

    def heads(self) -> list[Ticket]:
        """The tickets that may go now, best first; one whose patience is spent stands alone. A giant
        comes first: held, it is passed over."""
        giant = self.giants.head()
        waiting = [(line.work, -line.weight, name, line) for name, line in self.lines.items() if line.requests]
        if len(waiting) > 1:
            waiting = [each for each in waiting if not self._classes[each[2]].yields] or waiting
            waiting.sort(key=lambda entry: entry[:3])
        heads = [] if giant is None else [giant]
        heads += [ticket for *_, line in waiting if (ticket := line.head()) is not None]
        for ticket in heads:
            if ticket.overtaken >= self.config.max_overtakes:
                return [ticket]
        return heads

    def dispatch(self, ticket: Ticket, now: float, output_tokens: float = 0.0) -> Charge:
        """It goes; ``output_tokens`` are expected of it."""
        line, of_class = self._line_of(ticket), self.lines[ticket.service_class]
        self._count(ticket, -1)
        if line is not of_class:
            of_class.work += ticket.request.prompt_tokens / of_class.weight
        return line.dispatched(ticket, now, output_tokens)

    def leave(self, ticket: Ticket, now: float) -> None:
        self._line_of(ticket).leave(ticket, now)
        self._count(ticket, -1)

    def recount(self, ticket: Ticket, prompt_tokens: int) -> None:
        """A waiting request's prompt was counted exactly; call before the request itself changes."""
        self.tokens += prompt_tokens - ticket.request.prompt_tokens
        self._line_of(ticket).recount(ticket, prompt_tokens)

    def expired(self, now: float) -> list[Ticket]:
        """Tickets that must be refused now, taken out of the queue."""
        out = []
        while self._expiry and (self._expiry[0][2].gone or self._expiry[0][0] <= now):
            ticket = heappop(self._expiry)[2]
            if not ticket.gone:
                self.leave(ticket, now)
                out.append(ticket)
        return out

    def next_expiry(self) -> float | None:
        while self._expiry and self._expiry[0][2].gone:
            heappop(self._expiry)
        return self._expiry[0][0] if self._expiry else None

    def reclass(self, config: QueueConfig, classes: ClassesConfig, tenants: TenantsConfig, now: float) -> None:
        """Take new bounds, classes and weights; tickets of a class that is gone move to ``interactive``."""
        old, self.config, self._classes = self.lines, config, classes.classes
        self.lines = {name: _keep(old.get(name), c, tenants) for name, c in classes.classes.items()}
        self.giants.reweigh(1.0, tenants)
        target = self.lines[INTERACTIVE]
        for name in sorted(old.keys() - classes.classes.keys()):
            if target.requests == 0:
                target.work = max(target.work, old[name].work)
            for ticket in old[name].tickets():
                ticket.service_class = INTERACTIVE
                target.enter(ticket, now)
        for giant in self.giants.tickets():
            if giant.service_class not in self.lines:
                giant.service_class = INTERACTIVE

    def view(self) -> dict[str, object]:
        return {
            "requests": self.requests,
            "tokens": self.tokens,
            "bytes": self.bytes,
            "held": self.giants.requests,
            "classes": {name: {"requests": line.requests, "tokens": line.tokens} for name, line in self.lines.items()},
        }

    def _line_of(self, ticket: Ticket) -> Line:
        return self.giants if ticket.held_until else self.lines[ticket.service_class]

    def _count(self, ticket: Ticket, sign: int) -> None:
        self.requests += sign
        self.tokens += sign * ticket.request.prompt_tokens
        self.bytes += sign * ticket.request.body_bytes


def _keep(line: Line | None, config: ClassConfig, tenants: TenantsConfig) -> Line:
    if line is None:
        return Line(config.weight, tenants)
    line.reweigh(config.weight, tenants)
    return line
