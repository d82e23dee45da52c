"""The waiting requests of one class on one upstream: fair between tenants, earliest deadline first within one.

    served(tenant) += (prompt + 2 × output tokens) ÷ weight        the least of those that wait goes next

Virtual token counter (VTC, 2401.00588), charged at dispatch with the output that is expected and corrected when
the answer has ended. A tenant that comes back from idle is lifted to the least of those that wait, so that nobody
spends credit that it gathered while absent; one that is ahead stays ahead until the others have caught up.
Two tenants that both wait are never further apart than one request of each (in served ÷ weight). With one tenant
all of this is one heap. Every operation is O(log tenants + log requests).
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heapify, heappop, heappush

from tidegate.policy.estimates import DrainMeter, Mean
from tidegate.policy.flow import Flow
from tidegate.policy.tenants import TenantsConfig
from tidegate.policy.ticket import Ticket

MOST_BOOKED_S = 60.0
"""Appointments are given this far ahead; a flood of refused requests must not outlast itself."""
FEW_SAMPLES = 30
OUTPUT_WEIGHT = 2.0
"""An output token costs an engine about this many prompt tokens (VTC's weights, 1 and 2)."""


@dataclass(slots=True)
class Charge:
    """What a dispatched request was taken to cost its tenant, until its end tells."""

    line: Line
    flow: Flow
    prompt_tokens: int
    output_tokens: float

    def correct(self, output_tokens: int, *, served: bool) -> None:
        """It had so many output tokens; what was not served costs nothing."""
        if served:
            self.line.charge(self.flow, OUTPUT_WEIGHT * (output_tokens - self.output_tokens))
        else:
            self.line.charge(self.flow, -self.prompt_tokens - OUTPUT_WEIGHT * self.output_tokens)


class Line:
    """Totals are exact at every moment."""

    __slots__ = (
        "_booked_until",
        "_busy_weight",
        "_flows",
        "_pushes",
        "_tenants",
        "_turns",
        "_virtual",
        "bytes",
        "meter",
        "requests",
        "tokens",
        "usual",
        "weight",
        "work",
    )

    def __init__(self, weight: float, tenants: TenantsConfig) -> None:
        self.weight = weight
        self.work = 0.0
        """Dispatched prompt tokens ÷ weight: the class with the least goes next."""
        self.requests = 0
        self.tokens = 0
        self.bytes = 0
        self.meter = DrainMeter()
        self.usual = Mean()
        """Prompt tokens of those that came to stand here."""
        self._tenants = tenants
        self._flows: dict[str, Flow] = {}
        """Who waits, and who waited and is ahead of those who do."""
        self._turns: list[tuple[float, int, Flow]] = []
        """By served; only the latest entry of a flow counts."""
        self._pushes = 0
        self._virtual = 0.0
        """What the least served of those that wait has had at least."""
        self._busy_weight = 0.0
        self._booked_until = 0.0

    def enter(self, ticket: Ticket, now: float) -> None:
        if self.requests == 0:
            self.meter.begin(now)
            self._forget_all()
        tenant = ticket.request.tenant
        flow = self._flows.get(tenant)
        if flow is None:
            flow = self._flows[tenant] = Flow(tenant, self._tenants.weight_of(tenant))
        if flow.requests == 0:
            flow.served = max(flow.served, self._virtual)
            self._busy_weight += flow.weight
            self._push(flow)
        flow.enter(ticket)
        self.requests += 1
        self.tokens += ticket.request.prompt_tokens
        self.bytes += ticket.request.body_bytes

    def head(self) -> Ticket | None:
        """Whose turn it is."""
        turns = self._turns
        while turns:
            served, turn, flow = turns[0]
            if turn == flow.turn:
                if flow.requests:
                    return flow.head()
                # Everybody who waits has had as much by now: there is nothing to remember.
                self._virtual = max(self._virtual, served)
                del self._flows[flow.tenant]
            heappop(turns)
        return None

    def leave(self, ticket: Ticket, now: float) -> None:
        """Take a ticket out, wherever it stands."""
        ticket.gone = True
        flow = self._flows[ticket.request.tenant]
        flow.leave(ticket)
        self.requests -= 1
        self.tokens -= ticket.request.prompt_tokens
        self.bytes -= ticket.request.body_bytes
        if flow.requests == 0:
            self._busy_weight -= flow.weight
        if self.requests == 0:
            self.meter.end(now)

    def dispatched(self, ticket: Ticket, now: float, output_tokens: float = 0.0) -> Charge:
        """It goes; ``output_tokens`` are expected of it."""
        tokens = max(1, ticket.request.prompt_tokens)
        self.meter.served(tokens, now)
        self.work += tokens / self.weight
        flow = self._flows[ticket.request.tenant]
        self._virtual = max(self._virtual, flow.served)
        self.leave(ticket, now)
        self.charge(flow, tokens + OUTPUT_WEIGHT * output_tokens)
        return Charge(self, flow, tokens, output_tokens)

    def charge(self, flow: Flow, tokens: float) -> None:
        """More was served to a tenant than it was charged, or less."""
        flow.served += tokens / flow.weight
        if self._flows.get(flow.tenant) is flow:
            self._push(flow)

    def tokens_per_s(self, now: float) -> float | None:
        """Prompt tokens that go while somebody stands here; None before ``FEW_SAMPLES`` of them went."""
        return self.meter.tokens_per_s(now) if self.meter.samples >= FEW_SAMPLES else None

    def recount(self, ticket: Ticket, prompt_tokens: int) -> None:
        """A waiting request's prompt was counted exactly; call before the request itself changes."""
        more = prompt_tokens - ticket.request.prompt_tokens
        self.tokens += more
        self._flows[ticket.request.tenant].count(ticket, more)

    def tokens_before(self, tenant: str, due_at: float, prompt_tokens: int) -> float:
        """Prompt tokens of the line that go before one of so many: its own tenant's that are due earlier, and of
        the others at most what their weights give them meanwhile."""
        flow = self._flows.get(tenant)
        if flow is None or flow.requests == 0:
            own, others, others_weight = 0, self.tokens, self._busy_weight
        else:
            own, others = flow.tokens_before(due_at), self.tokens - flow.tokens
            others_weight = self._busy_weight - flow.weight
        if others <= 0:
            return own
        weight = self._tenants.weight_of(tenant)
        return own + min(others, (own + prompt_tokens) * others_weight / weight)

    def book(self, wait_s: float, service_s: float, now: float) -> float:
        """When a refused client should come back, in seconds from now: behind those who wait, and
        behind those who were sent away before it. Without the second part, everybody refused in one
        burst comes back at the same moment and is refused again."""
        start = max(now + wait_s, self._booked_until)
        self._booked_until = min(start + service_s, now + MOST_BOOKED_S)
        return start - now

    def tickets(self) -> list[Ticket]:
        """In the order of their deadlines."""
        return sorted((t for flow in self._flows.values() for t in flow.tickets()), key=lambda t: (t.due_at, t.id))

    def reweigh(self, weight: float, tenants: TenantsConfig) -> None:
        """Take new weights, of the class and of its tenants."""
        self.weight, self._tenants = weight, tenants
        for flow in self._flows.values():
            flow.weight = tenants.weight_of(flow.tenant)
        self._busy_weight = sum(flow.weight for flow in self._flows.values() if flow.requests)

    def _push(self, flow: Flow) -> None:
        turns = self._turns
        if len(turns) > 64 and len(turns) > 2 * len(self._flows):
            turns[:] = [entry for entry in turns if entry[1] == entry[2].turn]
            heapify(turns)
        self._pushes += 1
        flow.turn = self._pushes
        heappush(turns, (flow.served, flow.turn, flow))

    def _forget_all(self) -> None:
        """Nobody waits, so nobody is owed anything."""
        self._flows.clear()
        self._turns.clear()
        self._virtual = self._busy_weight = 0.0
