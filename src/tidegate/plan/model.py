"""A model, as far as memory is concerned."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil

from tidegate.plan.layers import Layers

VLLM = "vLLM"
LLAMA_CPP = "llama.cpp"
"""Engines whose flags are told."""


@dataclass(frozen=True, slots=True)
class Weights:
    """Bytes as stored on a GPU."""

    total_bytes: int
    embedding_bytes: int = 0
    """Token embedding: on the first pipeline stage. Part of the total."""
    head_bytes: int = 0
    """Output projection, 0 where it is the embedding itself: on the last stage. Part of the total."""
    whole_bytes: int = 0
    """Norms, routers and latent down-projections: whole on each tensor-parallel GPU. Part of the total."""

    def on_gpu(self, layers: int, tensor_parallel: int, stages: int) -> int:
        """Bytes on one GPU of the fullest of ``stages`` pipeline stages."""
        blocks = self.total_bytes - self.embedding_bytes - self.head_bytes
        share = ceil(layers / stages) / layers
        ends = self.embedding_bytes + self.head_bytes
        if stages > 1:
            # A tied embedding is needed on both ends.
            ends = max(self.embedding_bytes, self.head_bytes)
        return ceil((ends + (blocks - self.whole_bytes) * share) / tensor_parallel + self.whole_bytes * share)


@dataclass(frozen=True, slots=True)
class Shape:
    """Widths that size the activations."""

    hidden: int
    intermediate: int
    """Numbers that a token's feed-forward holds at once; with experts, those of all experts it uses."""
    attention: int
    """Numbers in query, key and value of one token."""
    vocabulary: int
    heads: int
    """Query heads: a tensor-parallel size must divide them."""


@dataclass(frozen=True, slots=True)
class Model:
    name: str
    source: str
    """Where its figures come from."""
    layers: tuple[Layers, ...]
    shape: Shape
    context_tokens: int
    """Longest sequence the model was made for."""
    weights: Weights
    parameters: int | None = None
    active_parameters: int | None = None
    """Parameters that one token uses; fewer than all where there are experts."""
    weight_format: str = "16-bit"
    kv_dtype: str = "auto"
    """The KV type that the checkpoint asks for."""
    engine: str = VLLM
    notes: tuple[str, ...] = field(default=())

    @property
    def layer_count(self) -> int:
        return sum(each.count for each in self.layers)

    @property
    def kv_heads(self) -> int:
        return max(each.heads for each in self.layers)

    @property
    def is_latent(self) -> bool:
        return all(each.is_latent for each in self.layers)

    def divides(self, tensor_parallel: int) -> bool:
        """Whether engines can split this model over so many GPUs: query heads and KV heads come out even."""
        if self.shape.heads % tensor_parallel:
            return False
        return self.is_latent or self.kv_heads % tensor_parallel == 0 or tensor_parallel % self.kv_heads == 0
