"""What one token leaves in the KV cache of each layer.

    full and sliding attention   KV heads × (key width + value width) numbers
    latent attention (MLA)       kv_lora_rank + qk_rope_head_dim numbers, for all heads together

The number of KV heads counts, not of query heads: that is a factor of 7 for Qwen2-7B (SPEC S3-50, C3).
Under tensor parallelism KV heads are divided, and repeated once there are fewer than GPUs; a latent vector is on
every GPU. A sliding layer holds no token older than its window.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from math import ceil


@dataclass(frozen=True, slots=True)
class Layers:
    """So many layers whose KV has the same form."""

    count: int
    heads: int
    """KV heads; 1 where the layers are latent."""
    key_width: int
    """Numbers per head and token; of a latent layer, all there are."""
    value_width: int = 0
    window_tokens: int | None = None
    """None: the layer sees every earlier token."""

    @property
    def is_latent(self) -> bool:
        return self.value_width == 0

    def heads_on(self, tensor_parallel: int) -> int:
        """KV heads on one of so many GPUs."""
        return max(1, self.heads // tensor_parallel)

    def token_bytes(self, bits: Fraction, tensor_parallel: int = 1) -> int:
        """KV bytes of one token in one of these layers, on one GPU."""
        return ceil(self.heads_on(tensor_parallel) * (self.key_width + self.value_width) * bits / 8)


def latent(count: int, rank: int, rope_width: int) -> Layers:
    """Layers of multi-head latent attention (DeepSeek-V2, arXiv 2405.04434)."""
    return Layers(count, heads=1, key_width=rank + rope_width)


def token_bytes(layers: Iterable[Layers], bits: Fraction, tensor_parallel: int = 1, stages: int = 1) -> int:
    """KV bytes that one more token takes on one GPU of the fullest pipeline stage, while no window is full."""
    return sum(ceil(each.count / stages) * each.token_bytes(bits, tensor_parallel) for each in layers)


def grouped(windows: Iterable[int | None], heads: int, key_width: int, value_width: int) -> tuple[Layers, ...]:
    """Layers of one shape, one entry of ``windows`` for each, gathered by window."""
    counts: dict[int | None, int] = {}
    for window in windows:
        counts[window] = counts.get(window, 0) + 1
    return tuple(Layers(count, heads, key_width, value_width, window) for window, count in counts.items())
