"""Between vLLM's requests and the ledger: what the scheduler class calls.

Typed loosely on purpose: vLLM lives in an environment of its own, and nothing here imports it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from tidegate.engines.vllm.attachment import pool_of
from tidegate.engines.vllm.carried import Carrier
from tidegate.engines.vllm.claim import Claim
from tidegate.engines.vllm.history_file import HistoryFile
from tidegate.engines.vllm.ledger import Ledger
from tidegate.engines.vllm.reservation import Reservation

DECLARED = "tidegate_max_tokens"
"""In ``vllm_xargs``: what the client declared, where a gateway wrote a smaller max_tokens into the request."""

OWN_END = ("FINISHED_STOPPED", "FINISHED_LENGTH_CAPPED")
"""Endings that say how long an answer is; an abort says how long its client was."""

TELL_EVERY_S = 0.25


class Reserver:
    """The ledger of one vLLM scheduler. Called from its thread only."""

    def __init__(
        self, scheduler: Any, reservation: Reservation, log: Any, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._scheduler = scheduler
        self._file = HistoryFile(reservation.history_file) if reservation.history_file else None
        self.ledger = Ledger(reservation, pool_of(scheduler), self._file.load() if self._file else None)
        self._log, self._clock = log, clock
        self._carrier = Carrier()
        self._told_at = 0.0
        self._admitted: list[tuple[Any, int]] = []
        """In this step, each with how many it passes."""
        self._claims: dict[str, Claim] = {}
        log.info("Tidegate reserves KV: %s, %s", reservation, self.ledger.pool)
        self._say_problem()

    def open_step(self) -> None:
        """Before vLLM schedules: the claims are made true, and who must wait is skipped in this step alone."""
        self._admitted = []
        by_id = {request.request_id: request for request in self._scheduler.running}
        claims = [self.claim(request) for request in self._served_in_order()]
        free = self._scheduler.kv_cache_manager.block_pool.get_num_free_blocks()
        for paused in self.ledger.pauses(claims, free):
            # schedule() counts its step before it compares.
            by_id[paused].next_decode_eligible_step = self._scheduler.current_step + 2

    def admits(self, request: Any) -> bool:
        """The gate: vLLM asks about each waiting request, in its order. One that holds blocks has its seat."""
        if request.request_id in self.ledger.seated:
            self.claim(request)
            return True
        if self.ledger.is_closed:
            return False
        passes = len(self.ledger.overtaking.blocked)
        if not self.ledger.admits(self.claim(request)):
            return False
        self._admitted.append((request, passes))
        return True

    def close_step(self) -> None:
        """After vLLM scheduled: who was admitted did begin, or met another limit and has no seat."""
        for request, passes in self._admitted:
            if request.status.name == "RUNNING":
                self.ledger.begin(self._claims[request.request_id], passes)
            else:
                self.ledger.unseat(request.request_id)
        every = self.ledger.reservation.log_every_steps
        if every and self._scheduler.current_step % every == 0:
            self._log.info("%s", self.figures())

    def freed(self, request: Any) -> None:
        """Its blocks went back."""
        self.ledger.unseat(request.request_id)

    def preempted(self, request: Any) -> None:
        """vLLM took its blocks."""
        self.ledger.preempted(self._claims[request.request_id])

    def ended(self, request: Any) -> None:
        """vLLM has done with it, and knows it no more."""
        self.ledger.forget(request.request_id)
        claim = self._claims.pop(request.request_id, None)
        if claim is None or not self.ledger.reservation.learns or request.status.name not in OWN_END:
            return
        self.ledger.lengths.record(claim.most_output_tokens, request.num_output_tokens)
        if self._file is not None:
            self._file.note(self.ledger.lengths)
            self._say_problem()

    def tell(self, stats: Any) -> None:
        """Send the figures along with vLLM's own: often enough to watch, and whenever it falls idle."""
        now = self._clock()
        if self._scheduler.running and now - self._told_at < TELL_EVERY_S:
            return
        self._told_at = now
        self._carrier.put(self.figures(), stats.num_kv_fetch_reqs_by_stage)

    def figures(self) -> Any:
        return self.ledger.figures(self._scheduler.requests.keys())

    def close(self) -> None:
        """The engine ends."""
        if self._file is not None and self.ledger.reservation.learns:
            self._file.save(self.ledger.lengths)
            self._say_problem()

    def _say_problem(self) -> None:
        if self._file is not None and self._file.problem is not None:
            self._log.warning("%s", self._file.problem)
            self._file.problem = None

    def _served_in_order(self) -> list[Any]:
        running: list[Any] = self._scheduler.running
        if self._scheduler.policy.name != "PRIORITY":
            return running
        return sorted(running, key=lambda request: (request.priority, request.arrival_time))

    def claim(self, request: Any) -> Claim:
        """What the ledger knows of it, made true."""
        claim = self._claims.get(request.request_id)
        if claim is None:
            claim = self._claims[request.request_id] = Claim(
                id=request.request_id,
                prompt_tokens=request.num_prompt_tokens,
                most_output_tokens=self._most_output_tokens(request),
                tokens=request.num_tokens,
            )
        # With asynchronous scheduling these are written before their tokens are known.
        in_flight = request.num_output_placeholders
        claim.tokens = request.num_tokens + in_flight
        claim.output_tokens = request.num_output_tokens + in_flight
        claim.held_blocks = self._held(request.request_id)
        return claim

    def _most_output_tokens(self, request: Any) -> int:
        parameters = request.sampling_params
        declared = ((parameters.extra_args or {}) if parameters is not None else {}).get(DECLARED, 0)
        most: int = max(request.max_tokens, declared if isinstance(declared, int) else 0)
        room: int = self._scheduler.max_model_len - request.num_prompt_tokens
        return max(1, min(most, room))

    def _held(self, request_id: str) -> int:
        managers = self._scheduler.kv_cache_manager.coordinator.single_type_managers
        tables = [each.req_to_blocks.get(request_id, ()) for each in managers]
        if self.ledger.pool.layout.block_tokens is not None:
            return len(tables[0])
        # What a sliding window has passed stands as the null block in its table.
        return sum(not block.is_null for table in tables for block in table)
