"""Public models as data: the fields of their ``config.json`` that memory depends on.

Each row, with the formulas of ``weights``, gives the number of parameters that its publisher states (the size of
the published safetensors), to the last one: ``PARAMETERS`` holds those figures.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from tidegate.errors import ConfigError
from tidegate.plan.hf_config import model_of
from tidegate.plan.model import Model


def _row(  # noqa: PLR0913, PLR0917  # one argument per column of the table below
    model_type: str,
    layers: int,
    hidden: int,
    heads: int,
    kv_heads: int,
    intermediate: int,
    vocabulary: int,
    context: int,
    **more: Any,
) -> dict[str, Any]:
    return {
        "model_type": model_type,
        "num_hidden_layers": layers,
        "hidden_size": hidden,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "intermediate_size": intermediate,
        "vocab_size": vocabulary,
        "max_position_embeddings": context,
        "tie_word_embeddings": False,
        **more,
    }


_MLA = {"kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128}

CONFIGS: Mapping[str, dict[str, Any]] = {
    "smollm2-135m": _row("llama", 30, 576, 9, 3, 1536, 49152, 8192, tie_word_embeddings=True),
    "gemma-3-1b": _row(
        "gemma3_text", 26, 1152, 4, 1, 6912, 262144, 32768,
        head_dim=256, sliding_window=512, sliding_window_pattern=6, tie_word_embeddings=True,
    ),
    "phi-3-mini": _row("phi3", 32, 3072, 32, 32, 8192, 32064, 4096, sliding_window=2047),
    "llama-2-7b": _row("llama", 32, 4096, 32, 32, 11008, 32000, 4096),
    "mistral-7b": _row("mistral", 32, 4096, 32, 8, 14336, 32000, 32768, sliding_window=4096),
    "qwen2-7b": _row(
        "qwen2", 28, 3584, 28, 4, 18944, 152064, 32768, sliding_window=131072, use_sliding_window=False,
    ),
    "qwen2.5-7b": _row(
        "qwen2", 28, 3584, 28, 4, 18944, 152064, 32768, sliding_window=131072, use_sliding_window=False,
    ),
    "llama-3-8b": _row("llama", 32, 4096, 32, 8, 14336, 128256, 8192),
    "llama-3.1-8b": _row("llama", 32, 4096, 32, 8, 14336, 128256, 131072),
    "qwen3-8b": _row(
        "qwen3", 36, 4096, 32, 8, 12288, 151936, 40960,
        head_dim=128, sliding_window=None, use_sliding_window=False,
    ),
    "gemma-2-9b": _row(
        "gemma2", 42, 3584, 16, 8, 14336, 256000, 8192, head_dim=256, sliding_window=4096, tie_word_embeddings=True,
    ),
    "deepseek-v2-lite": _row(
        "deepseek_v2", 27, 2048, 16, 16, 10944, 102400, 163840,
        **_MLA, q_lora_rank=None, n_routed_experts=64, n_shared_experts=2, num_experts_per_tok=6,
        moe_intermediate_size=1408, first_k_dense_replace=1,
    ),
    "gpt-oss-20b": _row(
        "gpt_oss", 24, 2880, 64, 8, 2880, 201088, 131072,
        head_dim=64, sliding_window=128, num_local_experts=32, num_experts_per_tok=4,
        layer_types=["sliding_attention", "full_attention"] * 12, quantization_config={"quant_method": "mxfp4"},
    ),
    "qwen3-30b-a3b": _row(
        "qwen3_moe", 48, 2048, 32, 4, 6144, 151936, 40960,
        head_dim=128, sliding_window=None, use_sliding_window=False,
        num_experts=128, num_experts_per_tok=8, moe_intermediate_size=768,
    ),
    "mixtral-8x7b": _row(
        "mixtral", 32, 4096, 32, 8, 14336, 32000, 32768,
        sliding_window=None, num_local_experts=8, num_experts_per_tok=2,
    ),
    "llama-3-70b": _row("llama", 80, 8192, 64, 8, 28672, 128256, 8192),
    "deepseek-v3": _row(
        "deepseek_v3", 61, 7168, 128, 128, 18432, 129280, 163840,
        **_MLA, q_lora_rank=1536, n_routed_experts=256, n_shared_experts=1, num_experts_per_tok=8,
        moe_intermediate_size=2048, first_k_dense_replace=3, topk_method="noaux_tc",
        quantization_config={"quant_method": "fp8"},
    ),
}  # fmt: skip

PARAMETERS: Mapping[str, int] = {
    "smollm2-135m": 134_515_008,
    "gemma-3-1b": 999_885_952,
    "phi-3-mini": 3_821_079_552,
    "llama-2-7b": 6_738_415_616,
    "mistral-7b": 7_241_732_096,
    "qwen2-7b": 7_615_616_512,
    "qwen2.5-7b": 7_615_616_512,
    "llama-3-8b": 8_030_261_248,
    "llama-3.1-8b": 8_030_261_248,
    "qwen3-8b": 8_190_735_360,
    "gemma-2-9b": 9_241_705_984,
    "deepseek-v2-lite": 15_706_484_224,
    "gpt-oss-20b": 20_914_757_184,
    "qwen3-30b-a3b": 30_532_122_624,
    "mixtral-8x7b": 46_702_792_704,
    "llama-3-70b": 70_553_706_496,
    "deepseek-v3": 671_026_419_200,
}
"""As published; DeepSeek-V3 without its multi-token-prediction module."""


def known_model(name: str, weight_dtype: str | None = None) -> Model | None:
    """The preset ``name``, in any case and with any of ``-``, ``_`` or a publisher before it; None if unknown."""
    by_key = {_key(each): each for each in CONFIGS}
    found = by_key.get(_key(name.rpartition("/")[2].removesuffix("-Instruct").removesuffix("-instruct")))
    return None if found is None else model_of(CONFIGS[found], found, f"preset {found}", weight_dtype)


def unknown_model(name: str) -> ConfigError:
    """The error for a name that is neither a file nor a preset."""
    by_key = {_key(each): each for each in CONFIGS}
    close = get_close_matches(_key(name), by_key, n=1)
    hint = f"did you mean {by_key[close[0]]}?" if close else f"presets: {', '.join(CONFIGS)}."
    return ConfigError([f"{name}: no such file and no preset; {hint} Or give a config.json, its folder or a GGUF file"])


def _key(name: str) -> str:
    return "".join(char for char in name.lower() if char.isalnum())
