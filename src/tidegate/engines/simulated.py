"""A simulated inference engine: continuous batching, chunked prefill, paged KV, recompute preemption.

It follows vLLM's scheduler (v1, first come first served):

* a step has a token budget; every decoding sequence gets one token of it, the rest goes to prompts;
* a prompt is admitted when a place in the batch is free and its *prompt* fits the pool: what it will
  generate is not looked at, so a pool can run short later;
* then the latest arrival loses its KV, goes to the front of the queue and is computed again, prompt
  and generated tokens; nothing is admitted in a step that preempted.

The engine has no clock: the caller passes ``now`` in seconds, never earlier than before, and calls
``advance`` at ``next_event_at``. Steps are exact. A run of steps in which nothing can change (no
prompt to compute, no arrival, finish, shortage or abort) is computed in closed form.
"""

from __future__ import annotations

from collections import deque
from heapq import heappop, heappush

from tidegate.engines.contiguous_kv import ContiguousKv
from tidegate.engines.kv_memory import KvMemory
from tidegate.engines.longest_step import LongestStep
from tidegate.engines.paged_kv import PagedKv
from tidegate.engines.prefix_cache import PrefixCache
from tidegate.engines.sequence import EngineEvent, EngineEventKind, Sequence, SequenceState
from tidegate.engines.step_model import SimulatedConfig
from tidegate.engines.step_run import SECONDS_PER_PS, StepRun
from tidegate.policy.reading import Reading

__all__ = ["EngineEvent", "EngineEventKind", "SimulatedConfig", "SimulatedEngine"]


class SimulatedEngine:
    def __init__(self, config: SimulatedConfig) -> None:
        self.config = config
        self.preemptions = 0
        """Total since the start."""
        self.is_down = False
        self._cost = config.step
        self._kv = _kv_of(config)
        self._cache = _cache_of(config)
        self._run = StepRun()
        self.steps = LongestStep()
        self._stall_s = 0.0
        self._step = 0
        self._sequences: dict[int, Sequence] = {}
        self._waiting: deque[Sequence] = deque()
        self._waiting_count = 0
        self._running: dict[int, Sequence] = {}
        self._prefilling: list[Sequence] = []
        self._chunks: list[int] = []
        self._decoding = 0
        self._context_tokens = 0
        self._joins = 0
        self._finishes: list[tuple[int, int, Sequence]] = []
        self._aborting: list[Sequence] = []
        self._events: list[EngineEvent] = []
        self._hung_at: float | None = None

    # Requests

    def submit(
        self,
        request_id: int,
        prompt_tokens: int,
        output_tokens: int,
        now: float,
        bound_tokens: int | None = None,
        blocks: tuple[int, ...] = (),
    ) -> bool:
        """Send one request. False: the connection was refused, the engine is down.

        ``bound_tokens``: the output that the client allows; only the contiguous baseline asks (default: the truth).
        ``blocks``: ids of the prompt's blocks, for the prefix cache.
        Raises ValueError when a request of that id is still here.
        """
        if self.is_down:
            return False
        if request_id in self._sequences:
            raise ValueError(f"request {request_id} is already in this engine")
        self._catch_up(now)
        room = self.config.longest_sequence - prompt_tokens
        if room < 1:
            self._events.append(EngineEvent(EngineEventKind.TOO_LONG, request_id, now))
            return True
        sequence = Sequence(request_id, prompt_tokens, min(output_tokens, room), prefill_tokens=prompt_tokens)
        sequence.blocks = blocks
        if self.config.is_contiguous:
            sequence.bound_tokens = min(room, output_tokens if bound_tokens is None else bound_tokens)
        self._sequences[request_id] = sequence
        self._waiting.append(sequence)
        self._waiting_count += 1
        if self._run.steps == 0:
            self._wake(now)
        elif self._waiting_count == 1:
            # Behind a blocked head an arrival changes nothing, so only the first one ends the run.
            self._run.cut()
        return True

    def abort(self, request_id: int, now: float) -> None:
        """The client left. The engine stops at the end of its step and confirms with ABORTED."""
        sequence = self._sequences.get(request_id)
        if sequence is None or not self.config.notices_aborts:
            return
        self._catch_up(now)
        if sequence.state is SequenceState.WAITING:
            self._waiting_count -= 1
            self._forget(sequence, EngineEventKind.ABORTED, now)
            self._run.cut()
        elif sequence.state is not SequenceState.GONE:
            self._aborting.append(sequence)
            self._run.cut()

    def next_event_at(self) -> float | None:
        """When to call ``advance``; None: nothing will happen by itself."""
        if self._events:
            return self._events[0].at
        if self._run.steps == 0 or self._hung_at is not None:
            return None
        return self._run.ends_at

    def advance(self, now: float) -> list[EngineEvent]:
        """Everything that happened up to ``now`` and was not told before, in order."""
        self._catch_up(now)
        events, self._events = self._events, []
        return events

    # What it tells

    def reading(self, now: float) -> Reading:
        if self.is_down:
            return Reading(at=now, ready=False, error="connection refused")
        self._catch_up(now)
        return Reading(
            at=now,
            running=len(self._running),
            waiting=self._waiting_count,
            kv_used_tokens=self._kv.used_tokens,
            preemptions=self.preemptions,
            prefix_asked_tokens=None if self._cache is None else self._cache.asked_tokens,
            prefix_found_tokens=None if self._cache is None else self._cache.found_tokens,
        )

    def memory(self, now: float) -> KvMemory:
        self._catch_up(now)
        kv, prefilled = self._kv, sum(sequence.prefilled_tokens for sequence in self._prefilling)
        return KvMemory(kv.total_tokens, kv.used_tokens, self._context_tokens + prefilled, kv.largest_free_tokens)

    def tokens(self, request_id: int, now: float) -> int:
        """Tokens generated so far for a request that is still here, else 0."""
        self._catch_up(now)
        sequence = self._sequences.get(request_id)
        return 0 if sequence is None else sequence.tokens_at(self._step)

    def last_token_at(self, request_id: int, now: float) -> float:
        """When the latest token of a request came; 0.0 before the first."""
        self._catch_up(now)
        sequence = self._sequences.get(request_id)
        if sequence is None or sequence.state is not SequenceState.DECODING:
            return 0.0 if sequence is None else sequence.last_token_at
        return self._run.boundary_at

    # Faults

    def crash(self, now: float) -> None:
        """Everything in flight is LOST; connections are refused until ``restart``."""
        self._catch_up(now)
        for sequence in list(self._sequences.values()):
            self._forget(sequence, EngineEventKind.LOST, now)
        self.is_down = True
        self._hung_at = None
        self._kv = _kv_of(self.config)
        self._cache = _cache_of(self.config)
        self._run.plan(0, 0, 0)
        self._waiting.clear()
        self._running.clear()
        self._finishes.clear()
        self._aborting.clear()
        self._prefilling, self._chunks = [], []
        self._waiting_count = self._decoding = self._context_tokens = 0

    def restart(self) -> None:
        self.is_down = False

    def hang(self, now: float) -> None:
        """Accepts requests and computes nothing until ``resume``."""
        if self._hung_at is None and not self.is_down:
            self._catch_up(now)
            self._hung_at = now

    def resume(self, now: float) -> None:
        if self._hung_at is None:
            return
        self._run.delay(now - self._hung_at)
        self._stall_s += now - self._hung_at
        self._hung_at = None
        if self._run.steps == 0:
            self._wake(now)

    def slow(self, factor: float, now: float) -> None:
        """Every later step takes ``factor`` times the modelled time; 1 is normal."""
        self._catch_up(now)
        self._cost = self.config.step.slowed(factor)
        self._run.cut()

    # Steps

    def _catch_up(self, now: float) -> None:
        if self._hung_at is not None:
            return
        run = self._run
        while steps := run.finished_steps(now):
            self._note_longest(steps)
            run.advance(steps)
            self._kv.grow(self._step, steps)
            self._context_tokens += steps * self._decoding
            self._step += steps
            if run.steps == 0:
                self._end_run(run.boundary_at)
                self._plan()

    def _note_longest(self, steps: int) -> None:
        run = self._run
        if self._stall_s > 0.0:
            self.steps.add(self._step, run.step_ps + round(self._stall_s / SECONDS_PER_PS))
            self._stall_s = 0.0
        # Steps of a run grow longer, so its last one stands for all.
        self.steps.add(self._step + steps - 1, run.step_ps + (steps - 1) * run.growth_ps, steps * self._decoding)

    def _wake(self, now: float) -> None:
        if self._hung_at is None:
            self._stall_s = 0.0
            self._run.start(now)
            self._plan()

    def _plan(self) -> None:
        preempted = self._make_room()
        self._fill_step(admits=not preempted)
        if not self._running:
            self._run.plan(0, 0, 0)
            return
        cost = self._cost
        step_ps = cost.fixed_ps + cost.context_ps * self._context_tokens
        step_ps += cost.sequence_ps * (self._decoding + len(self._chunks)) + cost.prefill_ps * sum(self._chunks)
        for sequence, chunk in zip(self._prefilling, self._chunks, strict=False):
            step_ps += cost.attention_ps(sequence.prefill_tokens, sequence.prefilled_tokens, chunk)
        steps = 1 if preempted or self._chunks else self._quiet_steps()
        self._run.plan(steps, step_ps, cost.context_ps * self._decoding)

    def _quiet_steps(self) -> int:
        """Steps until a sequence finishes or the pool runs short."""
        if not self.config.skips_quiet_steps:
            return 1
        finishes = self._finishes
        while self._is_stale(finishes[0]):
            heappop(finishes)
        return self._kv.steps_until_short(self._step, finishes[0][0] - self._step)

    def _make_room(self) -> bool:
        """Preempt until every decoding sequence can grow. True: someone lost its place."""
        preempted = False
        while self._kv.is_short(self._step):
            # First come first served keeps the batch in order of arrival, re-admissions included.
            self._preempt(next(reversed(self._running.values())))
            preempted = True
        return preempted

    def _preempt(self, sequence: Sequence) -> None:
        if sequence.state is SequenceState.DECODING:
            sequence.worst_gap_s = self._worst_gap_s(sequence)
            sequence.generated_tokens = sequence.tokens_at(self._step)
            sequence.last_token_at = self._run.boundary_at
        self._leave_batch(sequence)
        sequence.state = SequenceState.WAITING
        sequence.prefill_tokens = sequence.prompt_tokens + sequence.generated_tokens
        sequence.prefilled_tokens = 0
        self._waiting.appendleft(sequence)
        self._waiting_count += 1
        self.preemptions += 1

    def _fill_step(self, admits: bool) -> None:
        """Give the tokens that decoding leaves to prompts: those begun first, then new ones."""
        budget = self.config.chunk_tokens - self._decoding
        chunks = self._chunks = []
        for sequence in self._prefilling:
            chunk = min(budget, sequence.prefill_tokens - sequence.prefilled_tokens)
            if chunk == 0:
                return
            chunks.append(chunk)
            budget -= chunk
        while admits and budget > 0 and (head := self._admissible()) is not None:
            self._admit(head)
            chunk = min(budget, head.prefill_tokens - head.prefilled_tokens)
            chunks.append(chunk)
            budget -= chunk

    def _admissible(self) -> Sequence | None:
        """The head of the queue, if a place and the blocks of its prompt are free."""
        if self._waiting_count == 0 or len(self._running) >= self.config.max_sequences:
            return None
        while self._waiting_count:
            sequence = self._waiting[0]
            tokens = sequence.prefill_tokens + sequence.bound_tokens
            if sequence.state is SequenceState.GONE:
                self._waiting.popleft()
            elif self._kv.is_torn(tokens):
                self._waiting.popleft()
                self._waiting_count -= 1
                self._forget(sequence, EngineEventKind.OUT_OF_MEMORY, self._run.boundary_at)
            else:
                return sequence if self._kv.fits(tokens, self._step) else None
        return None

    def _admit(self, sequence: Sequence) -> None:
        self._waiting.popleft()
        self._waiting_count -= 1
        sequence.state = SequenceState.PREFILLING
        if self._cache is not None:
            sequence.prefilled_tokens = self._cache.read(sequence.blocks, sequence.prefill_tokens)
        self._kv.take(sequence.id, sequence.prefill_tokens + sequence.bound_tokens)
        self._running[sequence.id] = sequence
        self._prefilling.append(sequence)

    def _end_run(self, at: float) -> None:
        if self._chunks:
            self._end_prefills(at)
        finishes = self._finishes
        while finishes and finishes[0][0] <= self._step:
            entry = heappop(finishes)
            if not self._is_stale(entry):
                self._leave_batch(entry[2])
                self._forget(entry[2], EngineEventKind.FINISHED, at)
        for sequence in self._aborting:
            if sequence.state is not SequenceState.GONE:
                self._leave_batch(sequence)
                self._forget(sequence, EngineEventKind.ABORTED, at)
        self._aborting.clear()

    def _end_prefills(self, at: float) -> None:
        done = 0
        for sequence, chunk in zip(self._prefilling, self._chunks, strict=False):
            sequence.prefilled_tokens += chunk
            done += sequence.prefilled_tokens == sequence.prefill_tokens
        # Prompts are computed in order, so those that are done stand first.
        ready, self._prefilling = self._prefilling[:done], self._prefilling[done:]
        for sequence in ready:
            self._start_decoding(sequence, at)

    def _start_decoding(self, sequence: Sequence, at: float) -> None:
        sequence.generated_tokens += 1
        if sequence.generated_tokens == 1:
            self._events.append(EngineEvent(EngineEventKind.FIRST_TOKEN, sequence.id, at, 1))
        else:
            sequence.worst_gap_s = max(sequence.worst_gap_s, at - sequence.last_token_at)
        sequence.state = SequenceState.DECODING
        sequence.joined_step = self._step
        sequence.finish_step = self._step + sequence.output_tokens - sequence.generated_tokens
        self._decoding += 1
        self._context_tokens += sequence.prefill_tokens
        self._kv.start_growing(sequence.prefill_tokens, self._step)
        self._joins += 1
        heappush(self._finishes, (sequence.finish_step, self._joins, sequence))

    def _leave_batch(self, sequence: Sequence) -> None:
        del self._running[sequence.id]
        if sequence.state is SequenceState.PREFILLING:
            self._prefilling.remove(sequence)
            self._kv.give_back(sequence.id, sequence.prefill_tokens)
            return
        held = sequence.kv_tokens_at(self._step)
        self._decoding -= 1
        self._context_tokens -= held
        self._kv.stop_growing(held, self._step)
        self._kv.give_back(sequence.id, held)

    def _forget(self, sequence: Sequence, kind: EngineEventKind, at: float) -> None:
        event = EngineEvent(kind, sequence.id, at, sequence.tokens_at(self._step), self._worst_gap_s(sequence))
        sequence.state = SequenceState.GONE
        del self._sequences[sequence.id]
        self._events.append(event)

    def _worst_gap_s(self, sequence: Sequence) -> float:
        if sequence.state is not SequenceState.DECODING:
            return sequence.worst_gap_s
        return max(sequence.worst_gap_s, self.steps.since(sequence.joined_step) * SECONDS_PER_PS)

    @staticmethod
    def _is_stale(entry: tuple[int, int, Sequence]) -> bool:
        finish_step, _, sequence = entry
        return sequence.state is not SequenceState.DECODING or sequence.finish_step != finish_step


def _cache_of(config: SimulatedConfig) -> PrefixCache | None:
    tokens = config.cached_block_tokens
    return PrefixCache(config.kv_tokens // tokens, tokens) if tokens else None


def _kv_of(config: SimulatedConfig) -> PagedKv | ContiguousKv:
    return ContiguousKv(config.kv_tokens) if config.is_contiguous else PagedKv(config.kv_tokens, config.block_tokens)
