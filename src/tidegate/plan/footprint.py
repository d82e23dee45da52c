"""What one GPU holds when an engine serves a model on it.

    KV pool = memory × utilization - weights - activations - CUDA context        (SPEC C2, S0-10)
    slots   = KV pool ÷ slot size        recommended sequences = ⌊0.8 × slots⌋   (SPEC S0-15, S0-16)

Activations are the larger of two peaks that vLLM's profiling run goes through:

    layers   prefill tokens × (3 × intermediate + 2 × hidden + query, key and value) × 2 bytes
    sampler  max_num_seqs × vocabulary × 39 bytes

The 39 bytes are read off published start logs of vLLM: 1.19 GiB for 256 × 128 256 (Llama 3.1 8B, with 79.14 GiB of
memory), 1.42 GiB for 256 × 152 064 (Qwen2.5 7B). CUDA context is an estimate as well: 512 MiB for the context, the
libraries and what nvidia-smi counts but CUDA does not offer, 256 MiB for CUDA graphs (logs: 0.23 to 0.67 GiB), and
256 MiB of NCCL buffers where GPUs work together (logs: 0.20 to 0.25 GiB on two to four GPUs).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import ceil

from tidegate.config.slot_plan import RECOMMENDED_SHARE
from tidegate.plan.gpus import MIB, Gpu
from tidegate.plan.layers import token_bytes
from tidegate.plan.model import Model
from tidegate.plan.paging import BLOCK_TOKENS, Paging, paging
from tidegate.plan.precision import kv_bits

DEFAULT_UTILIZATION = 0.86
"""S3-51: 0.85 to 0.88. The rest is for what is measured by nobody; vLLM's own default is 0.92."""
SAMPLER_BYTES = 39
CONTEXT_MIB = 512
GRAPHS_MIB = 256
NCCL_MIB = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """How the engine is told to serve. None: as the planner recommends."""

    tensor_parallel: int = 1
    stages: int = 1
    """Pipeline stages."""
    utilization: float = DEFAULT_UTILIZATION
    kv_dtype: str = "auto"
    slot_mib: int = 256
    max_sequences: int | None = None
    """--max-num-seqs. None: the recommended number."""
    prefill_tokens: int | None = None
    """--max-num-batched-tokens. None: vLLM's default for the GPU."""
    block_tokens: int = BLOCK_TOKENS
    activations_mib: int | None = None
    """Measured, in place of the estimate."""
    context_mib: int | None = None
    """Measured, in place of the estimate."""

    @property
    def gpus(self) -> int:
        return self.tensor_parallel * self.stages


def pool_bytes(memory_bytes: int, utilization: float, weights_bytes: int, other_bytes: int) -> int:
    """KV memory that is left on one GPU; negative where the rest alone does not fit."""
    return int(memory_bytes * utilization) - weights_bytes - other_bytes


def slots_in(memory_bytes: int, slot_bytes: int) -> int:
    return max(0, memory_bytes) // slot_bytes


def recommended_sequences(slots: int) -> int:
    """80 % of the slots: the rest is for bursts (SPEC S0-15)."""
    return int(slots * RECOMMENDED_SHARE)


@dataclass(frozen=True)
class Footprint:
    """One GPU of the fullest pipeline stage."""

    model: Model
    gpu: Gpu
    serving: Serving

    @property
    def budget_bytes(self) -> int:
        """What the engine may use."""
        return int(self.gpu.memory_bytes * self.serving.utilization)

    @cached_property
    def weights_bytes(self) -> int:
        return self.model.weights.on_gpu(self.model.layer_count, self.serving.tensor_parallel, self.serving.stages)

    @property
    def context_bytes(self) -> int:
        """CUDA context, graphs and communication."""
        if self.serving.context_mib is not None:
            return self.serving.context_mib * MIB
        return (CONTEXT_MIB + GRAPHS_MIB + (NCCL_MIB if self.serving.gpus > 1 else 0)) * MIB

    @cached_property
    def max_sequences(self) -> int:
        """What to run: at most one per slot of those asked (SPEC C1), else 80 % of the slots.

        The largest such number whose own sampler still leaves the pool for it; at least 1.
        """
        asked = self.serving.max_sequences
        allowed = recommended_sequences if asked is None else int
        low, high = 1, max(1, allowed(slots_in(self._pool_bytes(1), self.slot_bytes)))
        high = high if asked is None else min(high, asked)
        while low < high:
            middle = (low + high + 1) // 2
            fits = middle <= allowed(slots_in(self._pool_bytes(middle), self.slot_bytes))
            low, high = (middle, high) if fits else (low, middle - 1)
        return low

    @property
    def prefill_tokens(self) -> int:
        return self.serving.prefill_tokens or self.gpu.prefill_tokens

    @property
    def activations_bytes(self) -> int:
        return self._activations_bytes(self.max_sequences)

    @property
    def pool_bytes(self) -> int:
        return self._pool_bytes(self.max_sequences)

    @property
    def token_bytes(self) -> int:
        """KV of one more token on this GPU, while no window is full."""
        return token_bytes(self.model.layers, kv_bits(self.kv_dtype), self.serving.tensor_parallel, self.serving.stages)

    @property
    def late_token_bytes(self) -> int:
        """KV of one more token once every window is full."""
        return token_bytes(
            (each for each in self.model.layers if each.window_tokens is None),
            kv_bits(self.kv_dtype),
            self.serving.tensor_parallel,
            self.serving.stages,
        )

    @property
    def kv_dtype(self) -> str:
        return self.model.kv_dtype if self.serving.kv_dtype == "auto" else self.serving.kv_dtype

    @cached_property
    def paging(self) -> Paging:
        return paging(
            self.model.layers,
            kv_bits(self.kv_dtype),
            tensor_parallel=self.serving.tensor_parallel,
            stages=self.serving.stages,
            block_tokens=self.serving.block_tokens,
            prefill_tokens=self.prefill_tokens,
        )

    @property
    def slot_bytes(self) -> int:
        return self.serving.slot_mib * MIB

    @property
    def slot_tokens(self) -> int:
        """Tokens that one slot holds for certain, whatever windows save."""
        return max(1, self.slot_bytes // self.token_bytes)

    @property
    def slots(self) -> int:
        return slots_in(self.pool_bytes, self.slot_bytes)

    @property
    def kv_tokens(self) -> int:
        """Tokens of short sequences that the pool holds."""
        return self.paging.blocks_in(self.pool_bytes) * self.serving.block_tokens // len(self.paging.groups)

    def sequences(self, tokens: int) -> int:
        """Sequences of that length beside each other."""
        return self.paging.sequences_in(self.pool_bytes, tokens)

    def slots_of_sequence(self, tokens: int) -> int:
        return ceil(self.paging.sequence_bytes(tokens) / self.slot_bytes)

    def longest(self, tokens: int) -> int:
        """The longest sequence that fits, up to ``tokens``."""
        return self.paging.longest_in(self.pool_bytes, tokens)

    def holds(self, tokens: int) -> bool:
        return self.sequences(tokens) > 0

    def _pool_bytes(self, sequences: int) -> int:
        other = self._activations_bytes(sequences) + self.context_bytes
        return pool_bytes(self.gpu.memory_bytes, self.serving.utilization, self.weights_bytes, other)

    def _activations_bytes(self, sequences: int) -> int:
        if self.serving.activations_mib is not None:
            return self.serving.activations_mib * MIB
        shape, split = self.model.shape, self.serving.tensor_parallel
        in_layer = ceil((3 * shape.intermediate + shape.attention) / split) + 2 * shape.hidden
        return max(self.prefill_tokens * in_layer * 2, sequences * shape.vocabulary * SAMPLER_BYTES)
