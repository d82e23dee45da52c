"""Memory of known GPUs, as data.

``memory_mib`` is what nvidia-smi shows as the total, compared with public outputs of that tool. It is below
the name's figure where ECC takes a part: an A10 of "24 GB" shows 23 028 MiB, that is 22.5 GiB. CUDA itself
reports another 0.3 to 0.9 GiB less, which the planner counts as CUDA context. Any other GPU: name its memory in MiB.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from tidegate.errors import ConfigError

MIB = 2**20
GIB = 2**30

MEMORY_MIB: Mapping[str, int] = {
    "T4": 15360,
    "A10": 23028,
    "A10G": 23028,
    "L4": 23034,
    "RTX 3090": 24576,
    "RTX 4090": 24564,
    "RTX 5090": 32607,
    "A100-40": 40960,
    "A40": 46068,
    "L40S": 46068,
    "A100-80": 81920,
    "H100": 81559,
    "H200": 143771,
    "B200": 183359,
}

ALIASES: Mapping[str, str] = {"A100": "A100-80", "H100-80": "H100", "4090": "RTX 4090", "3090": "RTX 3090"}

SMALL_PREFILL_TOKENS = 2048
LARGE_PREFILL_TOKENS = 8192
HUGE_PREFILL_TOKENS = 16384


@dataclass(frozen=True, slots=True)
class Gpu:
    name: str
    memory_bytes: int

    @property
    def prefill_tokens(self) -> int:
        """vLLM's default --max-num-batched-tokens for its server (``get_batch_defaults``, 0.32)."""
        if self.memory_bytes >= 160 * GIB:
            return HUGE_PREFILL_TOKENS
        is_large = self.memory_bytes >= 70 * GIB and not self.name.startswith("A100")
        return LARGE_PREFILL_TOKENS if is_large else SMALL_PREFILL_TOKENS


def gpu(name: str) -> Gpu:
    """A known GPU by name, or one of ``name`` MiB. Raises ConfigError that lists the known ones."""
    if name.isdecimal() and int(name) > 0:
        return Gpu(f"{int(name)} MiB", int(name) * MIB)
    by_key = {_key(each): each for each in MEMORY_MIB} | {_key(alias): real for alias, real in ALIASES.items()}
    if (found := by_key.get(_key(name))) is None:
        close = get_close_matches(_key(name), by_key, n=1)
        hint = f"did you mean {by_key[close[0]]}? Otherwise" if close else f"known: {', '.join(MEMORY_MIB)}. Otherwise"
        raise ConfigError([f"--gpu: {name!r} is not known; {hint} give its memory in MiB, as nvidia-smi shows it"])
    return Gpu(found, MEMORY_MIB[found] * MIB)


def gpus() -> list[Gpu]:
    """Every known GPU, the smallest first."""
    return sorted((gpu(name) for name in MEMORY_MIB), key=lambda each: each.memory_bytes)


def _key(name: str) -> str:
    return "".join(char for char in name.lower().removesuffix("gb") if char.isalnum())
