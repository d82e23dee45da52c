"""How long one step of an inference engine takes, and how much memory its KV pool has.

The formula is ``step = fixed + prefill·P + sequence·N + context·C + quadratic·Σ p(x + p/2)``: P prompt
tokens computed in the step, N sequences in it, C KV tokens read by the decoding ones. The last term
is the attention of prompts over 8k tokens (Mooncake, FAST'25), p tokens computed after x earlier ones; on
CPUs it is seen from the first token on.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tidegate.errors import ConfigError

LONG_PROMPT_TOKENS = 8192
"""Below this length the quadratic part of attention is inside the measured cost per token."""

PICOSECONDS_PER_MS = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class StepModel:
    """Costs in whole picoseconds, so that a sum does not depend on the order of its terms.

    That makes one closed form over many steps equal to the steps counted one by one.
    """

    fixed_ps: int
    prefill_ps: int
    """Per prompt token."""
    sequence_ps: int
    """Per sequence in the batch."""
    context_ps: int
    """Per KV token that the decoding sequences read."""
    quadratic_ps: int = 0
    """Per prompt token and earlier token, in prompts longer than ``quadratic_from_tokens``."""
    quadratic_from_tokens: int = LONG_PROMPT_TOKENS

    def __post_init__(self) -> None:
        if self.fixed_ps < 1 or min(self.prefill_ps, self.sequence_ps, self.context_ps, self.quadratic_ps) < 0:
            raise ConfigError([f"{self}: a step takes time, and no cost is negative"])

    @classmethod
    def from_ms(
        cls, fixed: float, prefill: float, sequence: float, context: float, quadratic: float = 0.0
    ) -> StepModel:
        return cls(
            fixed_ps=round(fixed * PICOSECONDS_PER_MS),
            prefill_ps=round(prefill * PICOSECONDS_PER_MS),
            sequence_ps=round(sequence * PICOSECONDS_PER_MS),
            context_ps=round(context * PICOSECONDS_PER_MS),
            quadratic_ps=round(quadratic * PICOSECONDS_PER_MS),
        )

    def slowed(self, factor: float) -> StepModel:
        """The same engine with every step ``factor`` times as long."""
        if factor <= 0:
            raise ConfigError([f"slow factor {factor}: must be above 0 (1 is normal speed, 2 is half speed)"])
        return replace(
            self,
            fixed_ps=round(self.fixed_ps * factor),
            prefill_ps=round(self.prefill_ps * factor),
            sequence_ps=round(self.sequence_ps * factor),
            context_ps=round(self.context_ps * factor),
            quadratic_ps=round(self.quadratic_ps * factor),
        )

    def attention_ps(self, prompt_tokens: int, earlier_tokens: int, chunk_tokens: int) -> int:
        """Extra time of a chunk of a long prompt; 0 for prompts whose attention the linear cost covers."""
        if prompt_tokens <= self.quadratic_from_tokens:
            return 0
        return self.quadratic_ps * chunk_tokens * (2 * earlier_tokens + chunk_tokens) // 2


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedConfig:
    """One simulated engine server."""

    step: StepModel
    kv_tokens: int
    """KV pool in tokens."""
    max_sequences: int = 256
    """Most sequences in the running batch (vLLM: ``--max-num-seqs``)."""
    chunk_tokens: int = 2048
    """Token budget of one step (vLLM: ``--max-num-batched-tokens``; 512 and 2048 are Sarathi-Serve's)."""
    context_tokens: int | None = None
    """Longest prompt + output of one sequence; None: what the KV pool holds."""
    block_tokens: int = 16
    """Tokens in one KV block (vLLM's default)."""
    is_contiguous: bool = False
    """The contiguous baseline instead of paging: one region for prompt and bound (``engines.contiguous_kv``)."""
    cached_block_tokens: int = 0
    """Tokens of one block of the prefix cache; 0: it has none."""
    notices_aborts: bool = True
    """False: a zombie, which works on for clients that have left."""
    skips_quiet_steps: bool = True
    """Computes a run of steps in which nothing can change in one go. Only tests switch it off."""

    def __post_init__(self) -> None:
        problems = []
        if self.block_tokens < 1 or self.kv_tokens < self.block_tokens:
            problems.append(f"kv_tokens {self.kv_tokens}: the pool must hold at least one block of {self.block_tokens}")
        if not 1 <= self.max_sequences <= self.chunk_tokens:
            problems.append(
                f"chunk_tokens {self.chunk_tokens}: every one of the {self.max_sequences} sequences needs one token "
                "of each step; raise chunk_tokens or lower max_sequences"
            )
        if problems:
            raise ConfigError(problems)

    @property
    def longest_sequence(self) -> int:
        pool = self.kv_tokens // self.block_tokens * self.block_tokens
        return pool if self.context_tokens is None else min(pool, self.context_tokens)
