"""The users: when they call, how long they wait, and whether they call again.

A client leaves when no token has come ``patience_s`` after its call, and calls again after its
``retry_delay_s`` under the same request key, up to ``tries`` calls. A refused client comes back after
the larger of that delay and Retry-After, as stock OpenAI SDKs do: they ignore a Retry-After over
60 s, and do not come back when told that it is useless. An answer that breaks off is not repeated.
Of a chain, each call is made when the one before was answered, and its user is gone when the whole has taken too long.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from tidegate.simulate.clock import Clock
from tidegate.simulate.front import Front
from tidegate.simulate.visit import Call, Demand, Ending, Visit

LONGEST_RETRY_AFTER_S = 60.0


class Clients:
    def __init__(
        self, clock: Clock, tries: int, *, heeds_retry_after: bool = True, returns_after_timeout: bool = True
    ) -> None:
        self.visits: list[Visit] = []
        self.live = 0
        """Visits that have not ended, those to come included."""
        self.refused_after_s: list[float] = []
        """Of every refused call, the seconds from the call to the refusal."""
        self._clock = clock
        self._tries = tries
        self._returns_after_timeout = returns_after_timeout
        self._longest_s = LONGEST_RETRY_AFTER_S if heeds_retry_after else 0.0
        self._calls = 0
        self._next: Iterator[Demand] = iter(())
        """What users of a closed loop have still to ask."""
        self._front: Front

    def start(self, front: Front, demands: list[Demand], users: int | None = None) -> None:
        """Every user calls ``front`` at their time. With ``users``, so many of them do, and each takes the next
        demand the moment that its last one has ended."""
        self._front = front
        rest = iter(demands)
        for demand in islice(rest, users):
            self._expect(demand)
        self._next = rest

    def _expect(self, demand: Demand) -> None:
        visit = Visit(demand)
        self.visits.append(visit)
        self.live += 1
        self._clock.schedule(demand.at, self._call, visit)

    def first_token(self, call: Call) -> None:
        call.first_token_at = self._clock.now
        if call.visit.first_token_at is None:
            call.visit.first_token_at = self._clock.now

    def answered(self, call: Call, output_tokens: int, degraded: str | None = None) -> None:
        visit = call.visit
        if visit.first_token_at is None:
            visit.first_token_at = self._clock.now
        visit.output_tokens = output_tokens
        visit.degraded = degraded
        call.is_open = False
        self._end(visit, Ending.ANSWERED)

    def refused(self, call: Call, retry_after_s: float | None) -> None:
        call.is_open = False
        self.refused_after_s.append(self._clock.now - call.at)
        if retry_after_s is None:
            self._end(call.visit, Ending.REFUSED)
            return
        pause_s = retry_after_s if retry_after_s <= self._longest_s else 0.0
        self._come_back(call.visit, Ending.REFUSED, pause_s)

    def failed(self, call: Call, ending: Ending) -> None:
        call.is_open = False
        if call.first_token_at is not None:
            self._end(call.visit, ending)
        else:
            self._come_back(call.visit, ending, 0.0)

    def _call(self, visit: Visit) -> None:
        visit.calls += 1
        self._calls += 1
        call = Call(self._calls, visit, self._clock.now)
        self._clock.schedule(call.at + visit.demand.patience_s, self._lose_patience, call)
        if visit.demand.chain is not None and visit.demand.worthless_after_s is not None:
            self._clock.schedule(visit.demand.at + visit.demand.worthless_after_s, self._lose_interest, call)
        self._front.open(call)

    def _lose_patience(self, call: Call) -> None:
        if call.is_open and call.first_token_at is None:
            call.is_open = False
            self._front.leave(call)
            if self._returns_after_timeout:
                self._come_back(call.visit, Ending.TIMEOUT, 0.0)
            else:
                self._end(call.visit, Ending.TIMEOUT)

    def _lose_interest(self, call: Call) -> None:
        """The chain's time is up: gone, whether or not the answer has begun."""
        if call.is_open:
            call.is_open = False
            self._front.leave(call)
            self._end(call.visit, Ending.TIMEOUT)

    def _come_back(self, visit: Visit, ending: Ending, pause_s: float) -> None:
        if visit.calls >= self._tries:
            self._end(visit, ending)
            return
        delay_s = max(visit.demand.retry_delay_s, pause_s)
        self._clock.schedule(self._clock.now + delay_s, self._call, visit)

    def _end(self, visit: Visit, ending: Ending) -> None:
        self.live -= 1
        visit.ending = ending
        visit.ended_at = self._clock.now
        self._go_on(visit)
        following = next(self._next, None)
        if following is not None:
            self._expect(replace(following, at=self._clock.now))

    def _go_on(self, visit: Visit) -> None:
        """The next call of a chain, unless this one failed or the chain has no time left."""
        demand, now = visit.demand, self._clock.now
        if demand.then is None or not visit.is_answered:
            return
        at, left_s = now + demand.then.at, demand.then.worthless_after_s
        if demand.worthless_after_s is not None:
            left_s = demand.at + demand.worthless_after_s - at
            if left_s <= 0:
                return
        self._expect(replace(demand.then, at=at, worthless_after_s=left_s))
