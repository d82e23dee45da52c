"""A model from the ``config.json`` of a Hugging Face checkpoint.

The weights are those that lie beside the file, where they do; else they are counted (``weights``).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from tidegate.errors import ConfigError
from tidegate.plan.layers import Layers, grouped, latent
from tidegate.plan.model import Model, Shape, Weights
from tidegate.plan.weights import Counted, block_bits, count, head_width, is_tied, kv_heads, used_width

NEEDED = ("hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size")
PATTERNS: Mapping[str, int] = {"gemma3": 6, "gemma3_text": 6, "cohere2": 4, "gpt_oss": 2}
"""Every so manieth layer sees everything, the others a window, where the file gives no pattern."""
STATEFUL = ("ssm_cfg", "mamba_d_state", "ssm_state_size", "state_size", "linear_num_value_heads", "layers_block_type")
"""Keys of models with recurrent layers."""


def read_config(path: Path, weight_dtype: str | None = None) -> Model:
    """The model of the file ``path``. Raises ConfigError."""
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError([f"{path}: cannot be read ({error.strerror})"]) from None
    except ValueError as error:
        raise ConfigError([f"{path}: not JSON ({error}); give the config.json of a Hugging Face model"]) from None
    if not isinstance(config, dict):
        raise ConfigError([f"{path}: not a JSON object; give the config.json of a Hugging Face model"])
    try:
        found = model_of(config, path.parent.name or path.name, str(path), weight_dtype)
    except (KeyError, TypeError, ValueError, ZeroDivisionError) as error:
        raise ConfigError([f"{path}: does not describe a model that the planner knows ({error!r})"]) from error
    stored_bytes = sum(each.stat().st_size for each in path.parent.glob("*.safetensors"))
    return found if not stored_bytes or weight_dtype else _with_stored(found, stored_bytes)


def model_of(config: Mapping[str, Any], name: str, source: str, weight_dtype: str | None = None) -> Model:
    """The model that ``config`` describes. Raises ConfigError for one that the planner cannot size."""
    text = _text_part(config)
    missing = [key for key in NEEDED if not text.get(key)]
    if missing:
        raise ConfigError([f"{source}: without {', '.join(missing)} this is no config.json of a decoder"])
    _refuse_unknown(text, source)
    quantization = config.get("quantization_config") or text.get("quantization_config")
    linear_bits, expert_bits, weight_format = block_bits(quantization, weight_dtype)
    counted = count(text)
    return Model(
        name=name,
        source=source,
        layers=_layers(text, source),
        shape=_shape(text),
        context_tokens=int(text.get("max_position_embeddings") or 0),
        weights=counted.stored(linear_bits, expert_bits) if counted else _ends(text),
        parameters=counted.total if counted else None,
        active_parameters=counted.active if counted else None,
        weight_format=weight_format,
        kv_dtype="fp8" if _asks_fp8_kv(quantization) else "auto",
        notes=_notes(config, text, counted),
    )


def windows(config: Mapping[str, Any]) -> list[int | None]:
    """Per layer how far it looks back; None: to the beginning.

    As in transformers and vLLM: ``layer_types`` where given, else the rule of the family, else one window for all.
    """
    layers, window = int(config["num_hidden_layers"]), config.get("sliding_window")
    family = str(config.get("model_type", ""))
    if "use_sliding_window" in config or family.startswith("qwen"):
        window = window if config.get("use_sliding_window") else None
    if not window:
        return [None] * layers
    if types := config.get("layer_types"):
        return [window if kind == "sliding_attention" else None for kind in types]
    if family == "gemma2":
        return [None if index % 2 else window for index in range(layers)]
    if family.startswith("qwen"):
        return [window if index >= int(config.get("max_window_layers", 0)) else None for index in range(layers)]
    pattern = int(config.get("sliding_window_pattern") or PATTERNS.get(family, 0))
    return [None if pattern and (index + 1) % pattern == 0 else window for index in range(layers)]


def _text_part(config: Mapping[str, Any]) -> dict[str, Any]:
    """The language model of a multimodal configuration."""
    text = config.get("text_config")
    if not isinstance(text, Mapping):
        return dict(config)
    return {**{key: config[key] for key in ("torch_dtype", "tie_word_embeddings") if key in config}, **text}


def _refuse_unknown(config: Mapping[str, Any], source: str) -> None:
    kinds = set(config.get("layer_types") or ()) - {"full_attention", "sliding_attention"}
    kinds |= {key for key in STATEFUL if config.get(key)}
    if config.get("attention_chunk_size"):
        kinds.add("attention_chunk_size")
    if kinds:
        why = f"{', '.join(sorted(kinds))}: layers that keep something else than KV per token are not known here"
        raise ConfigError([f"{source}: {why}. Start the engine and take the KV cache size that it prints"])
    if config.get("is_encoder_decoder"):
        raise ConfigError([f"{source}: an encoder-decoder model; the planner knows decoders only"])


def _layers(config: Mapping[str, Any], source: str) -> tuple[Layers, ...]:
    if config.get("kv_lora_rank"):
        return (latent(int(config["num_hidden_layers"]), int(config["kv_lora_rank"]), int(config["qk_rope_head_dim"])),)
    found = windows(config)
    if len(found) != int(config["num_hidden_layers"]):
        raise ConfigError([f"{source}: layer_types names {len(found)} layers of {config['num_hidden_layers']}"])
    return grouped(found, kv_heads(config), head_width(config), head_width(config))


def _shape(config: Mapping[str, Any]) -> Shape:
    heads, width = int(config["num_attention_heads"]), head_width(config)
    attention = (heads + 2 * kv_heads(config)) * width
    if config.get("kv_lora_rank"):
        attention = heads * (int(config["qk_nope_head_dim"]) + int(config["qk_rope_head_dim"]) + config["v_head_dim"])
    return Shape(int(config["hidden_size"]), used_width(config), attention, int(config["vocab_size"]), heads)


def _ends(config: Mapping[str, Any]) -> Weights:
    """What is certain of a model whose blocks cannot be counted: its embedding and output projection."""
    embedding = int(config["vocab_size"]) * int(config["hidden_size"]) * 2
    head = 0 if is_tied(config) else embedding
    return Weights(embedding + head, embedding, head)


def _with_stored(model: Model, stored_bytes: int) -> Model:
    notes = tuple(note for note in model.notes if not note.startswith("weights:"))
    return replace(
        model, weights=replace(model.weights, total_bytes=stored_bytes), weight_format="as stored", notes=notes
    )


def _asks_fp8_kv(quantization: Any) -> bool:
    if not isinstance(quantization, Mapping):
        return False
    scheme = quantization.get("kv_cache_scheme") or {}
    return bool(quantization.get("kv_cache_quant_algo") == "FP8" or scheme.get("num_bits") == 8)


def _notes(config: Mapping[str, Any], text: Mapping[str, Any], counted: Counted | None) -> tuple[str, ...]:
    notes = []
    if counted is None:
        notes.append(
            f"weights: model_type {text.get('model_type', '')!r} cannot be counted here. Put the .safetensors beside "
            "the file, or give --weights-gib"
        )
    if "vision_config" in config or "audio_config" in config:
        notes.append("the language model alone is counted; a vision or audio tower needs memory beside it")
    return tuple(notes)
