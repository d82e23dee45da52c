"""Step costs and KV pools of known GPUs and models, as data.

Sources. The A100, H100 and A40 rows are fits to the MLP kernel profiles that Vidur publishes
(MIT licence, microsoft/vidur) plus about 1.5 ms of host time per step; H100, L40S and A10 context
costs are a roofline at 75 % of memory bandwidth. **The A10 row is extrapolated**: no step-time
curve of an A10 is published. KV pools are 90 % of memory less bf16 weights. The quadratic term is
4 · layers · hidden FLOPs at 60 % of the GPU's dense bf16 peak.
"""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.engines.step_model import SimulatedConfig, StepModel
from tidegate.errors import ConfigError


@dataclass(frozen=True, slots=True)
class GpuRow:
    fixed_ms: float
    sequence_ms: float
    peak_tflops: float
    """Dense bf16, from the vendor's data sheet."""


@dataclass(frozen=True, slots=True)
class ModelRow:
    layers: int
    hidden: int
    """Attention heads × head size."""


@dataclass(frozen=True, slots=True)
class PairRow:
    """What depends on GPU and model together."""

    prefill_ms: float
    context_ms: float
    kv_tokens: int


GPUS: dict[str, GpuRow] = {
    "H100": GpuRow(7.4, 0.011, 989.0),
    "A100": GpuRow(11.3, 0.03, 312.0),
    "L40S": GpuRow(24.0, 0.04, 362.0),
    "A40": GpuRow(27.0, 0.054, 149.7),
    "A10": GpuRow(34.0, 0.06, 125.0),
}

MODELS: dict[str, ModelRow] = {"qwen2-7b": ModelRow(28, 3584), "llama-3-8b": ModelRow(32, 4096)}

PAIRS: dict[tuple[str, str], PairRow] = {
    ("H100", "qwen2-7b"): PairRow(0.022, 2.3e-5, 1_060_000),
    ("H100", "llama-3-8b"): PairRow(0.025, 5.2e-5, 456_000),
    ("A100", "qwen2-7b"): PairRow(0.067, 3.8e-5, 1_060_000),
    ("A100", "llama-3-8b"): PairRow(0.067, 8.6e-5, 456_000),
    ("L40S", "qwen2-7b"): PairRow(0.057, 8.9e-5, 517_000),
    ("L40S", "llama-3-8b"): PairRow(0.057, 2.0e-4, 220_000),
    ("A40", "qwen2-7b"): PairRow(0.13, 1.1e-4, 517_000),
    ("A40", "llama-3-8b"): PairRow(0.13, 2.5e-4, 220_000),
    ("A10", "qwen2-7b"): PairRow(0.16, 1.3e-4, 90_000),
    ("A10", "llama-3-8b"): PairRow(0.20, 2.9e-4, 33_000),
}

_ATTENTION_EFFICIENCY = 0.6


def preset(gpu: str, model: str, *, chunk_tokens: int = 2048, max_sequences: int = 256) -> SimulatedConfig:
    """One replica of ``model`` on one ``gpu``. Raises ConfigError that lists the known pairs."""
    pair = PAIRS.get((gpu, model))
    if pair is None:
        known = ", ".join(f"{known_gpu}/{known_model}" for known_gpu, known_model in PAIRS)
        raise ConfigError([f"no preset for {gpu}/{model}: choose one of {known}"])
    row, shape = GPUS[gpu], MODELS[model]
    flops_per_token_pair = 4 * shape.layers * shape.hidden
    quadratic_ms = flops_per_token_pair / (row.peak_tflops * 1e12 * _ATTENTION_EFFICIENCY) * 1e3
    return SimulatedConfig(
        step=StepModel.from_ms(row.fixed_ms, pair.prefill_ms, row.sequence_ms, pair.context_ms, quadratic_ms),
        kv_tokens=pair.kv_tokens,
        chunk_tokens=chunk_tokens,
        max_sequences=max_sequences,
    )
