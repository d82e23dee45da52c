"""Parameters of a Hugging Face configuration, counted part by part.

The formulas are those of the model classes in transformers. They give the published number of parameters of
every model in ``known_models`` to the last one, which a test checks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Any

from tidegate.plan.model import Weights
from tidegate.plan.precision import weight_bits

DENSE = Fraction(16)
"""Bits of what quantized checkpoints leave alone: embeddings, the output projection, norms, routers."""


@dataclass(frozen=True, slots=True)
class Counted:
    """Numbers of parameters of the whole model."""

    embedding: int
    head: int
    """0 where the output projection is the embedding."""
    linear: int
    """Matrices of attention and dense feed-forward."""
    experts: int
    """Matrices of experts that a router chooses."""
    whole: int
    """Norms, biases, routers, latent down-projections."""
    active_experts: int
    """Those of ``experts`` that one token uses."""

    @property
    def total(self) -> int:
        return self.embedding + self.head + self.linear + self.experts + self.whole

    @property
    def active(self) -> int:
        return self.total - self.experts + self.active_experts

    def stored(self, linear_bits: Fraction, expert_bits: Fraction) -> Weights:
        """The bytes of it, with these bits per weight in the blocks."""
        blocks = self.linear * linear_bits + self.experts * expert_bits + self.whole * DENSE
        embedding, head, whole = (ceil(part * DENSE / 8) for part in (self.embedding, self.head, self.whole))
        return Weights(ceil(blocks / 8) + embedding + head, embedding, head, whole)


@dataclass(frozen=True, slots=True)
class Block:
    """One decoder block."""

    linear: int
    whole: int
    experts: int = 0
    active_experts: int = 0


def count(config: Mapping[str, Any]) -> Counted | None:
    """Parameters of a text model's configuration, or None where its family is not known here."""
    family = str(config.get("model_type", ""))
    if (attention := _ATTENTION.get(family)) is None:
        return None
    hidden, layers = int(config["hidden_size"]), int(config["num_hidden_layers"])
    norms = (4 if family in _FOUR_NORMS else 2) * hidden
    blocks = [_sum(attention(config), _feed_forward(config, index), Block(0, norms)) for index in range(layers)]
    embedding = int(config["vocab_size"]) * hidden
    return Counted(
        embedding,
        0 if is_tied(config) else embedding,
        sum(block.linear for block in blocks),
        sum(block.experts for block in blocks),
        sum(block.whole for block in blocks) + hidden,
        sum(block.active_experts for block in blocks),
    )


def is_tied(config: Mapping[str, Any]) -> bool:
    """Whether the output projection is the embedding; Gemma's default, where the file says nothing."""
    return bool(config.get("tie_word_embeddings", str(config.get("model_type", "")).startswith("gemma")))


def head_width(config: Mapping[str, Any]) -> int:
    """Numbers per attention head."""
    return int(config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"])


def kv_heads(config: Mapping[str, Any]) -> int:
    return int(config.get("num_key_value_heads") or config["num_attention_heads"])


def used_width(config: Mapping[str, Any]) -> int:
    """Numbers that one token's feed-forward holds at once: of all experts that it uses."""
    dense = int(config.get("intermediate_size") or 4 * config["hidden_size"])
    if not expert_count(config):
        return dense
    each = int(config.get("moe_intermediate_size") or dense)
    return each * (int(config.get("num_experts_per_tok") or 1) + int(config.get("n_shared_experts") or 0))


def expert_count(config: Mapping[str, Any]) -> int:
    """Routed experts; 0 in a dense model."""
    names = ("n_routed_experts", "num_local_experts", "num_experts")
    return next((int(config[name]) for name in names if config.get(name)), 0)


def block_bits(quantization: Mapping[str, Any] | None, dtype: str | None) -> tuple[Fraction, Fraction, str]:
    """Bits per weight of the linear layers and of the experts, and the name of the format.

    ``dtype`` (--weight-dtype) goes before what the checkpoint says.
    """
    if dtype is not None:
        return weight_bits(dtype), weight_bits(dtype), dtype.lower()
    if not quantization:
        return DENSE, DENSE, "16-bit"
    method = str(quantization.get("quant_method", "")).lower()
    if method == "mxfp4":
        # gpt-oss quantizes its experts and nothing else.
        return DENSE, weight_bits("mxfp4"), "mxfp4 experts"
    bits = _quantized_bits(method, quantization)
    return bits, bits, f"{method or 'quantized'} {float(bits):.2f} bits"


def _quantized_bits(method: str, quantization: Mapping[str, Any]) -> Fraction:
    if method in ("awq", "gptq", "gptq_marlin", "awq_marlin"):
        bits, group = int(quantization.get("bits", 4)), int(quantization.get("group_size", 128))
        # Per group one 16-bit scale and one zero point; group -1 is the whole column.
        return Fraction(bits) + (Fraction(16 + bits, group) if group > 0 else 0)
    if method == "bitsandbytes":
        return weight_bits("nf4" if quantization.get("load_in_4bit") else "int8")
    groups = quantization.get("config_groups")
    if isinstance(groups, Mapping) and groups:
        stored = next(iter(groups.values())).get("weights") or {}
        group = stored.get("group_size") or 0
        bits = int(stored.get("num_bits", 8))
        return Fraction(bits) + (Fraction(16, group) if group > 0 else 0)
    return weight_bits("nvfp4" if "fp4" in str(quantization.get("quant_algo", "")).lower() else "fp8")


def _sum(*parts: Block) -> Block:
    return Block(
        sum(part.linear for part in parts),
        sum(part.whole for part in parts),
        sum(part.experts for part in parts),
        sum(part.active_experts for part in parts),
    )


def _plain_attention(config: Mapping[str, Any]) -> Block:
    hidden, width = int(config["hidden_size"]), head_width(config)
    queries, keys = int(config["num_attention_heads"]) * width, kv_heads(config) * width
    biases = queries + 2 * keys + hidden if config.get("attention_bias") else 0
    return Block(2 * hidden * queries + 2 * hidden * keys, biases)


def _qwen2_attention(config: Mapping[str, Any]) -> Block:
    """Qwen2 has biases on query, key and value, whatever the file says."""
    width = head_width(config)
    biases = (int(config["num_attention_heads"]) + 2 * kv_heads(config)) * width
    return _sum(_plain_attention({**config, "attention_bias": False}), Block(0, biases))


def _normed_attention(config: Mapping[str, Any]) -> Block:
    """Query and key are normed per head."""
    return _sum(_plain_attention(config), Block(0, 2 * head_width(config)))


def _sink_attention(config: Mapping[str, Any]) -> Block:
    """gpt-oss: biases everywhere and one learned sink per head."""
    return _sum(_plain_attention({**config, "attention_bias": True}), Block(0, int(config["num_attention_heads"])))


def _latent_attention(config: Mapping[str, Any]) -> Block:
    hidden, heads = int(config["hidden_size"]), int(config["num_attention_heads"])
    rank, query_rank = int(config["kv_lora_rank"]), int(config.get("q_lora_rank") or 0)
    plain, rope, value = (int(config[name]) for name in ("qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim"))
    down = hidden * (rank + rope) + rank + (hidden * query_rank + query_rank)
    up = (query_rank or hidden) * heads * (plain + rope) + rank * heads * (plain + value) + heads * value * hidden
    return Block(up, down)


def _feed_forward(config: Mapping[str, Any], index: int) -> Block:
    """Gated: three matrices. A dense one, or experts behind a router."""
    hidden, dense = int(config["hidden_size"]), int(config["intermediate_size"])
    experts = expert_count(config)
    if not experts or index < int(config.get("first_k_dense_replace") or 0):
        return Block(3 * hidden * dense, 0)
    width = int(config.get("moe_intermediate_size") or dense)
    each, router = 3 * hidden * width, hidden * experts
    if config["model_type"] == "gpt_oss":
        each, router = each + 2 * width + hidden, router + experts
    if config.get("topk_method") == "noaux_tc":
        router += experts
    shared = 3 * hidden * width * int(config.get("n_shared_experts") or 0)
    if config.get("shared_expert_intermediate_size"):
        shared, router = 3 * hidden * int(config["shared_expert_intermediate_size"]), router + hidden
    return Block(shared, router, experts * each, int(config["num_experts_per_tok"]) * each)


_FOUR_NORMS = ("gemma2", "gemma3", "gemma3_text")
_ATTENTION: Mapping[str, Callable[[Mapping[str, Any]], Block]] = {
    "llama": _plain_attention,
    "mistral": _plain_attention,
    "mixtral": _plain_attention,
    "phi3": _plain_attention,
    "gemma": _plain_attention,
    "gemma2": _plain_attention,
    "gemma3": _normed_attention,
    "gemma3_text": _normed_attention,
    "qwen2": _qwen2_attention,
    "qwen2_moe": _qwen2_attention,
    "qwen3": _normed_attention,
    "qwen3_moe": _normed_attention,
    "gpt_oss": _sink_attention,
    "deepseek_v2": _latent_attention,
    "deepseek_v3": _latent_attention,
}
