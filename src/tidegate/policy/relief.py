"""When the longest prompts of a queue go to the lighter model, before anybody in it is refused.

    begins while   queue tokens ÷ what leaves the queue  >  relieve_after_s
    goes on until  that wait                             <  relieve_until_s

Longest first: a few long prompts are most of a burst's work, so the fewest clients get a lesser answer. In the
project's calibration (section 1) a size-blind choice degraded 17 to 27 % of a burst, longest first 13 to 18 %. Two
thresholds, so that it does not begin and end with every request.
"""

from __future__ import annotations

from heapq import heappop, heappush

from tidegate.policy.ladder import LadderConfig
from tidegate.policy.ticket import Ticket

FEW = 64


class Relief:
    """Of one upstream whose ladder has a lighter model."""

    __slots__ = ("_longest", "_tidies_at", "config", "is_on")

    def __init__(self, config: LadderConfig) -> None:
        self.config = config
        self.is_on = False
        self._longest: list[tuple[int, int, Ticket]] = []
        self._tidies_at = FEW
        """With so many entries, those whose tickets are gone are thrown out: O(1) for each on average."""

    def note(self, ticket: Ticket) -> None:
        """It stands in the queue now, or its prompt was counted anew."""
        if len(self._longest) >= self._tidies_at:
            self._longest = sorted(each for each in self._longest if not each[2].gone)
            self._tidies_at = max(FEW, 2 * len(self._longest))
        heappush(self._longest, (-ticket.request.prompt_tokens, ticket.id, ticket))

    def wants(self, wait_s: float | None) -> bool:
        """Whether somebody should go, at this predicted wait of the whole queue."""
        after_s = self.config.relieve_after_s
        if after_s is None or wait_s is None:
            self.is_on = False
        else:
            self.is_on = wait_s > (self.config.relieve_until_s if self.is_on else after_s)
        return self.is_on

    def longest(self) -> Ticket | None:
        """Who goes first."""
        heap = self._longest
        while heap:
            tokens, _, ticket = heap[0]
            if not ticket.gone and -tokens == ticket.request.prompt_tokens:
                return ticket
            heappop(heap)
        return None

    def pass_over(self) -> None:
        """Whoever goes first cannot be helped: leave it where it stands."""
        heappop(self._longest)
