"""Who may begin, and who goes on, so that the KV pool is enough for all that run.

The scheduler keeps the claims' counts true and asks in this order, step by step:

    pauses(free) → admits(claim), down the waiting queue → seat or unseat what really began.

Rule ``worst_case`` keeps Σ longest <= pool; rule ``peak`` the peak of the forecast <= pool. With ``guaranteed`` the
state stays safe besides: an admission or a block is only granted if all could still run to their ends, so that vLLM
always finds a block for somebody and has nobody to preempt. Blocks that several share through the prefix cache count
once for each, so what the ledger thinks free is never more than what is free.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from tidegate.engines.vllm.claim import Claim
from tidegate.engines.vllm.forecast import Forecast
from tidegate.engines.vllm.overtaking import Overtaking
from tidegate.engines.vllm.pauses import Pauses
from tidegate.engines.vllm.reservation import Pool, Reservation
from tidegate.engines.vllm.safety import Holdings, State
from tidegate.policy.lengths import LengthHistory


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What operators see; blocks, or events since the start."""

    pool_blocks: int
    held_blocks: int
    """In block tables, shared ones once for each."""
    reserved_blocks: int
    """Promised to those that run: the sum of their longest, or the peak of their forecast."""
    peak_reserved_blocks: int
    overtakes: int
    preemptions: int
    pauses: int
    paused_steps: int
    leaked: int
    """Claims of sequences that the engine does not know any more. Not 0: a bug."""


class Ledger:
    """The claims of one engine on its pool."""

    def __init__(self, reservation: Reservation, pool: Pool, lengths: LengthHistory | None = None) -> None:
        self.reservation = reservation
        self.pool = pool
        self.lengths = LengthHistory() if lengths is None else lengths
        self.overtaking = Overtaking(reservation.overtakes)
        self.pausing = Pauses(None if reservation.is_guaranteed else reservation.pause_steps)
        self.seated: dict[str, Claim] = {}
        """Those that run, oldest first."""
        self.preemptions = 0
        self.peak_reserved_blocks = 0
        self._has_paused = False
        self._promised = 0
        """Σ longest of those that are seated."""
        self._forecast: Forecast | None = None
        self._holdings: Holdings | None = None

    def pauses(self, running: Iterable[Claim], free_blocks: int) -> list[str]:
        """A step begins: who of the ``running``, given in the order in which they are served, must not take a
        block in it. ``free_blocks`` is what the engine can really give."""
        running = list(running)
        # Whatever runs has a seat, however it came to run.
        for claim in running:
            if claim.id not in self.seated:
                self._seat(claim)
        self.overtaking.look()
        self._changed()
        paused = [] if self.reservation.rule == "worst_case" else self._short_of_blocks(running, free_blocks)
        # All paused would be a standstill. It needs a shortage that only the engine can end.
        if len(paused) == len(self.seated):
            paused = []
        self.pausing.commit(paused)
        self._has_paused = bool(paused)
        return paused

    @property
    def is_closed(self) -> bool:
        """Whether nobody more may begin in this step, whatever it needs."""
        return self._has_paused or self.overtaking.is_closed

    def admits(self, claim: Claim) -> bool:
        """Whether the next of the waiting queue may begin now; if so it is seated."""
        if self.is_closed:
            return False
        claim.longest_blocks = self.pool.most_blocks(claim)
        if not self._fits(claim):
            self.overtaking.block(claim.id, never_passed=claim.is_preempted)
            return False
        self._seat(claim)
        return True

    def begin(self, claim: Claim, passed: int) -> None:
        """It was admitted and did begin, past the first ``passed`` that were blocked in this look."""
        claim.is_preempted = False
        self.overtaking.forget(claim.id)
        self.overtaking.pass_by(self.overtaking.blocked[:passed])

    def unseat(self, request_id: str) -> None:
        """Its blocks are free: it has ended, was preempted, or did not begin after all."""
        claim = self.seated.pop(request_id, None)
        if claim is not None:
            self._promised -= claim.longest_blocks
            self._changed()

    def forget(self, request_id: str) -> None:
        """The engine has done with it."""
        self.unseat(request_id)
        self.overtaking.forget(request_id)

    def preempted(self, claim: Claim) -> None:
        """The engine took its blocks away."""
        claim.is_preempted = True
        self.preemptions += 1

    def figures(self, known: Collection[str]) -> Figures:
        """``known``: the sequences that the engine has, running or waiting."""
        return Figures(
            pool_blocks=self.pool.blocks,
            held_blocks=sum(claim.held_blocks for claim in self.seated.values()),
            reserved_blocks=self.reserved_blocks(),
            peak_reserved_blocks=self.peak_reserved_blocks,
            overtakes=self.overtaking.overtakes,
            preemptions=self.preemptions,
            pauses=self.pausing.sequences,
            paused_steps=self.pausing.paused_steps,
            leaked=sum(each not in known for each in self.seated),
        )

    def reserved_blocks(self) -> int:
        """Promised to those that are seated."""
        return self._promised if self.reservation.rule == "worst_case" else self._future().peak

    def _seat(self, claim: Claim) -> None:
        claim.longest_blocks = self.pool.most_blocks(claim)
        self.seated[claim.id] = claim
        self._promised += claim.longest_blocks
        self._changed()

    def _changed(self) -> None:
        self._forecast = self._holdings = None

    def _fits(self, claim: Claim) -> bool:
        pool = self.pool
        # Whoever is alone may always run: the engine refuses what can never fit.
        is_alone = not self.seated
        if self.reservation.rule == "worst_case":
            reserved = self._promised + claim.longest_blocks
        elif self.reservation.is_guaranteed and not self._held().are_safe_with(self._state(claim), pool.blocks):
            return is_alone
        else:
            reserved = self._future().peak_with(self._left(claim), claim.tokens + pool.slack_tokens)
        if reserved > pool.blocks and not is_alone:
            return False
        self.peak_reserved_blocks = max(self.peak_reserved_blocks, min(reserved, pool.blocks))
        return True

    def _left(self, claim: Claim) -> int:
        if not self.reservation.learns:
            return claim.most_left_tokens
        return self.lengths.left_tokens(claim.most_output_tokens, claim.output_tokens, self.reservation.quantile)

    def _future(self) -> Forecast:
        if self._forecast is None:
            slack = self.pool.slack_tokens
            ends = ((self._left(claim), claim.tokens + slack) for claim in self.seated.values())
            self._forecast = Forecast(self.pool.layout, ends)
        return self._forecast

    def _held(self) -> Holdings:
        """Of all that are seated, once the coming step is done."""
        if self._holdings is None:
            self._holdings = Holdings(map(self._state, self.seated.values()))
        return self._holdings

    def _state(self, claim: Claim) -> State:
        held = max(claim.held_blocks, self.pool.next_blocks(claim))
        return held, max(held, claim.longest_blocks)

    def _short_of_blocks(self, running: list[Claim], free_blocks: int) -> list[str]:
        pool, guaranteed = self.pool, self.reservation.is_guaranteed
        wanting = [(claim, more) for claim in running if (more := pool.next_blocks(claim) - claim.held_blocks) > 0]
        # If all can have what they want and the rest is still safe, so is each grant on the way there.
        if sum(more for _, more in wanting) <= free_blocks and (not guaranteed or self._held().are_safe(pool.blocks)):
            return []
        grants = _Grants(self, free_blocks)
        return [
            claim.id for claim, more in wanting if not grants.give(claim, more) and self.pausing.may_pause(claim.id)
        ]


class _Grants:
    """What is left in one step while blocks are granted, one sequence after the other."""

    def __init__(self, ledger: Ledger, free_blocks: int) -> None:
        self._is_guaranteed = ledger.reservation.is_guaranteed
        self._pool_blocks = ledger.pool.blocks
        self._free = free_blocks
        self._states = {
            claim.id: (claim.held_blocks, max(claim.held_blocks, claim.longest_blocks))
            for claim in ledger.seated.values()
        }

    def give(self, claim: Claim, more: int) -> bool:
        if more > self._free or (self._is_guaranteed and not self._is_safe_after(claim, more)):
            return False
        self._free -= more
        return True

    def _is_safe_after(self, claim: Claim, more: int) -> bool:
        held, most = self._states[claim.id]
        self._states[claim.id] = (held + more, max(most, held + more))
        if Holdings(self._states.values()).are_safe(self._pool_blocks):
            return True
        self._states[claim.id] = (held, most)
        return False
