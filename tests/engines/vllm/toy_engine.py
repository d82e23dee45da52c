"""A paged engine in forty lines, shaped like vLLM's scheduler, around a real ledger."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from tidegate.engines.vllm.claim import Claim
from tidegate.engines.vllm.ledger import Ledger


@dataclass
class Sequence:
    claim: Claim
    length: int
    """Output tokens that it will really have."""
    computed: int = 0
    shared_blocks: int = 0
    """Its first blocks, which all with shared blocks have in common."""
    overtaken: int = 0
    preemptions: int = 0


@dataclass
class ToyEngine:
    """Prefill in chunks, one token a step afterwards; the youngest is preempted when a block is missing."""

    ledger: Ledger
    chunk_tokens: int = 64
    most_running: int = 32
    waiting: deque[Sequence] = field(default_factory=deque)
    running: list[Sequence] = field(default_factory=list)
    ended: list[Sequence] = field(default_factory=list)
    steps: int = 0
    fullest: int = 0

    def submit(self, sequence: Sequence) -> None:
        self.waiting.append(sequence)

    def abort(self, index: int) -> None:
        everyone = [*self.running, *self.waiting]
        if everyone:
            gone = everyone[index % len(everyone)]
            (self.running if gone in self.running else self.waiting).remove(gone)
            self.ledger.forget(gone.claim.id)

    def held(self) -> int:
        """Blocks that are really taken: shared ones once."""
        own = sum(each.claim.held_blocks - min(each.shared_blocks, each.claim.held_blocks) for each in self.running)
        return own + max((min(each.shared_blocks, each.claim.held_blocks) for each in self.running), default=0)

    def free(self) -> int:
        return self.ledger.pool.blocks - self.held()

    def step(self) -> None:
        self.steps += 1
        paused = self.ledger.pauses([each.claim for each in self.running], self.free())
        budget = self.chunk_tokens
        served, preempted = [], False
        for each in list(self.running):
            if each.claim.id in paused or each not in self.running or budget == 0:
                continue
            chunk = min(budget, each.claim.tokens - each.computed)
            preempted |= self._make_room(each, chunk)
            if each in self.running:
                self._compute(each, chunk)
                budget -= chunk
                served.append(each)
        if not preempted:
            served += self._admit(budget)
        self.fullest = max(self.fullest, self.held())
        for each in served:
            self._sample(each)

    def _make_room(self, sequence: Sequence, chunk: int) -> bool:
        preempted = False
        while self._missing(sequence, chunk) > self.free() and sequence in self.running:
            victim = self.running.pop()
            victim.computed = victim.claim.held_blocks = 0
            victim.preemptions += 1
            self.ledger.preempted(victim.claim)
            self.ledger.unseat(victim.claim.id)
            self.waiting.appendleft(victim)
            preempted = True
        return preempted

    def _missing(self, sequence: Sequence, chunk: int) -> int:
        needed = self.ledger.pool.layout.needed(sequence.computed + chunk)
        return needed - sequence.claim.held_blocks

    def _compute(self, sequence: Sequence, chunk: int) -> None:
        sequence.claim.held_blocks += max(0, self._missing(sequence, chunk))
        sequence.computed += chunk

    def _admit(self, budget: int) -> list[Sequence]:
        begun: list[Sequence] = []
        skipped: list[Sequence] = []
        while self.waiting and budget and len(self.running) < self.most_running:
            each = self.waiting.popleft()
            if not self.ledger.admits(each.claim):
                skipped.append(each)
                continue
            # As vLLM does: the whole prompt must fit beside what is held now.
            if self.ledger.pool.layout.needed(each.claim.tokens) > self.free():
                self.ledger.unseat(each.claim.id)
                self.waiting.appendleft(each)
                break
            self.ledger.begin(each.claim, len(skipped))
            for passed in skipped:
                passed.overtaken += 1
            chunk = min(budget, each.claim.tokens)
            self.running.append(each)
            self._compute(each, chunk)
            budget -= chunk
            begun.append(each)
        self.waiting.extendleft(reversed(skipped))
        return begun

    def _sample(self, sequence: Sequence) -> None:
        claim = sequence.claim
        if sequence not in self.running or sequence.computed < claim.tokens:
            return
        claim.tokens += 1
        claim.output_tokens += 1
        if claim.output_tokens == sequence.length:
            self.running.remove(sequence)
            self.ended.append(sequence)
            self.ledger.forget(claim.id)
            self.ledger.lengths.record(claim.most_output_tokens, claim.output_tokens)
