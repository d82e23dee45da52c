"""A model from the head of a GGUF file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tidegate.errors import ConfigError
from tidegate.plan.gguf_header import Header, Tensor, read_header
from tidegate.plan.layers import Layers, latent
from tidegate.plan.model import LLAMA_CPP, Model, Shape, Weights

ALTERNATING: Mapping[str, int] = {"gemma2": 2, "gemma3": 6, "gpt-oss": 2, "cohere2": 4}
"""Every so manieth layer sees everything, where the file gives no pattern: llama.cpp's own table."""
EXPERTS = "_exps."
NOTE = (
    "GGUF: llama.cpp takes the KV of max_num_seqs × max_model_len at its start, in one piece, and gives each "
    "sequence its part"
)


def read_gguf(path: Path) -> Model:
    """The model in the GGUF file ``path``. Raises ConfigError."""
    header = read_header(path)
    try:
        return gguf_model(header, path.stem, str(path))
    except (TypeError, ValueError, ZeroDivisionError) as error:
        raise ConfigError([f"{path}: its head does not describe a language model ({error!r})"]) from error


def gguf_model(header: Header, name: str, source: str) -> Model:
    """The model of a head that has been read. Raises ConfigError for one that the planner cannot size."""
    keys = _Keys(header.metadata, source)
    if any(key.startswith((f"{keys.family}.ssm.", f"{keys.family}.wkv.")) for key in header.metadata):
        raise ConfigError([f"{source}: {keys.family} has recurrent layers, which the planner does not know"])
    parameters = sum(tensor.numbers for tensor in header.tensors)
    return Model(
        name=name,
        source=source,
        layers=_layers(keys),
        shape=_shape(keys, header),
        context_tokens=keys.number("context_length", 0),
        weights=_weights(header.tensors),
        parameters=parameters,
        active_parameters=parameters - _idle(keys, header.tensors),
        weight_format=_format(header.tensors),
        engine=LLAMA_CPP,
        notes=(NOTE,),
    )


class _Keys:
    """Metadata under the name of the model's architecture."""

    def __init__(self, metadata: Mapping[str, Any], source: str) -> None:
        self.family = str(metadata.get("general.architecture", ""))
        self._metadata = metadata
        self._source = source

    def find(self, key: str) -> Any:
        return self._metadata.get(f"{self.family}.{key}")

    def number(self, key: str, default: int | None = None) -> int:
        """A whole number; of a list by layer, the largest."""
        found = self.find(key)
        if isinstance(found, list):
            found = max(found, default=None)
        if found is not None:
            return int(found)
        if default is None:
            raise ConfigError([f"{self._source}: its head has no {self.family}.{key}; is it a language model?"])
        return default

    def by_layer(self, key: str, layers: int) -> list[int]:
        found = self.find(key)
        if isinstance(found, list) and len(found) == layers:
            return [int(each) for each in found]
        return [self.number(key)] * layers


def _layers(keys: _Keys) -> tuple[Layers, ...]:
    layers = keys.number("block_count")
    if keys.find("attention.key_length_mla") is not None:
        return (latent(layers, keys.number("attention.kv_lora_rank"), keys.number("rope.dimension_count")),)
    width = keys.number("embedding_length") // keys.number("attention.head_count")
    key, value = keys.number("attention.key_length", width), keys.number("attention.value_length", width)
    heads = keys.by_layer("attention.head_count_kv", layers)
    counts = Counter(zip(heads, _windows(keys, layers), strict=True))
    return tuple(Layers(count, kv_heads, key, value, window) for (kv_heads, window), count in counts.items())


def _windows(keys: _Keys, layers: int) -> list[int | None]:
    window, pattern = keys.number("attention.sliding_window", 0), keys.find("attention.sliding_window_pattern")
    if isinstance(pattern, list) and len(pattern) == layers and window:
        return [window if is_sliding else None for is_sliding in pattern]
    every = int(pattern) if isinstance(pattern, int) else ALTERNATING.get(keys.family, 0)
    if not window or not every:
        # llama.cpp keeps every token of families that it has no pattern for.
        return [None] * layers
    return [None if (index + 1) % every == 0 else window for index in range(layers)]


def _shape(keys: _Keys, header: Header) -> Shape:
    heads, hidden = keys.number("attention.head_count"), keys.number("embedding_length")
    width = keys.number("attention.key_length", hidden // heads)
    feed_forward = keys.number("feed_forward_length", 4 * hidden)
    if used := keys.number("expert_used_count", 0):
        feed_forward = used * keys.number("expert_feed_forward_length", feed_forward)
    vocabulary = keys.number("vocab_size", int(header.metadata.get("tokenizer.ggml.tokens") or 0))
    attention = (heads + 2 * keys.number("attention.head_count_kv", heads)) * width
    return Shape(hidden, feed_forward, attention, vocabulary, heads)


def _weights(tensors: tuple[Tensor, ...]) -> Weights:
    by_name = {tensor.name: tensor.size_bytes for tensor in tensors}
    return Weights(
        sum(by_name.values()),
        by_name.get("token_embd.weight", 0),
        by_name.get("output.weight", 0),
        sum(size for name, size in by_name.items() if "norm" in name or "ffn_gate_inp" in name),
    )


def _idle(keys: _Keys, tensors: tuple[Tensor, ...]) -> int:
    """Parameters of the experts that one token does not use."""
    experts = keys.number("expert_count", 0)
    if not experts:
        return 0
    routed = sum(tensor.numbers for tensor in tensors if EXPERTS in tensor.name)
    return routed * (experts - keys.number("expert_used_count", experts)) // experts


def _format(tensors: tuple[Tensor, ...]) -> str:
    sizes: Counter[str] = Counter()
    for tensor in tensors:
        sizes[tensor.type_name] += tensor.size_bytes
    numbers, stored = sum(tensor.numbers for tensor in tensors), sum(sizes.values())
    return f"GGUF, mostly {sizes.most_common(1)[0][0]}, {stored * 8 / numbers:.2f} bits" if numbers else "GGUF"
