"""The waiting requests of one tenant in one line, earliest deadline first."""

from __future__ import annotations

from heapq import heapify, heappop, heappush

from tidegate.policy.ticket import Ticket

DUE_STEP_S = 0.25
"""Long flows know how much is due before a moment to within this time: some 40 sums for a class that waits 10 s,
however many wait in it."""
SCANNED = 32
"""Up to here every ticket is looked at, which is exact."""


class Flow:
    """A heap with lazy deletion; totals are exact at every moment."""

    __slots__ = ("_by_due", "_heap", "_latest_due", "requests", "served", "tenant", "tokens", "turn", "weight")

    def __init__(self, tenant: str, weight: float) -> None:
        self.tenant = tenant
        self.weight = weight
        self.served = 0.0
        """Tokens served to it ÷ its weight: whose is least goes next."""
        self.turn = 0
        """Number of its latest entry among the turns of its line."""
        self.requests = 0
        self.tokens = 0
        self._latest_due = 0.0
        self._heap: list[tuple[float, int, Ticket]] = []
        self._by_due: dict[int, int] = {}
        """Prompt tokens by due time, in steps."""

    def enter(self, ticket: Ticket) -> None:
        due_at = ticket.due_at
        self._latest_due = max(self._latest_due, due_at) if self.requests else due_at
        heappush(self._heap, (due_at, ticket.id, ticket))
        self.requests += 1
        self.count(ticket, ticket.request.prompt_tokens)

    def head(self) -> Ticket | None:
        heap = self._heap
        while heap and heap[0][2].gone:
            heappop(heap)
        return heap[0][2] if heap else None

    def leave(self, ticket: Ticket) -> None:
        """A ticket has gone, from wherever it stood."""
        self.requests -= 1
        self.count(ticket, -ticket.request.prompt_tokens)
        # Dead entries stay in the heap until they surface; without this, cancelled tickets that
        # never surface would grow it without bound.
        if len(self._heap) > 64 and len(self._heap) > 2 * self.requests:
            self._heap = [entry for entry in self._heap if not entry[2].gone]
            heapify(self._heap)

    def count(self, ticket: Ticket, tokens: int) -> None:
        """So many more tokens, or fewer, are due by this ticket's time."""
        self.tokens += tokens
        step = int(ticket.due_at / DUE_STEP_S)
        left = self._by_due.get(step, 0) + tokens
        if left:
            self._by_due[step] = left
        else:
            self._by_due.pop(step, None)

    def tokens_before(self, due_at: float) -> int:
        """Prompt tokens that go first. At once for whoever stands at the end, which is the rule while
        clients are alike."""
        if due_at >= self._latest_due:
            return self.tokens
        if len(self._heap) <= SCANNED:
            return sum(t.request.prompt_tokens for due, _, t in self._heap if due <= due_at and not t.gone)
        last = int(due_at / DUE_STEP_S)
        return sum(tokens for step, tokens in self._by_due.items() if step <= last)

    def tickets(self) -> list[Ticket]:
        return [entry[2] for entry in self._heap if not entry[2].gone]
