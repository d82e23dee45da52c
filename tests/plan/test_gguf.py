from __future__ import annotations

from pathlib import Path

import pytest

from tests.plan.gguf_files import EMBEDDING, LLAMA, Value, gguf, tensor, write
from tidegate.engines.llamacpp.model_file import model_file
from tidegate.errors import ConfigError
from tidegate.plan.gguf_header import read_header
from tidegate.plan.gguf_model import read_gguf
from tidegate.plan.known_models import known_model
from tidegate.plan.layers import Layers, latent
from tidegate.plan.model_source import find_model


def layers(folder: Path, metadata: dict[str, Value]) -> tuple[Layers, ...]:
    return read_gguf(write(folder, gguf(metadata, [EMBEDDING]))).layers


def family(name: str, **changes: Value) -> dict[str, Value]:
    """The small model under another architecture's name."""
    renamed = {key.replace("llama.", f"{name}."): value for key, value in LLAMA.items()}
    return {**renamed, "general.architecture": name, **{f"{name}.{key}": value for key, value in changes.items()}}


def test_the_shipped_model_is_read_as_its_preset() -> None:
    path = model_file()
    found, preset = read_gguf(path), known_model("smollm2-135m")
    assert preset is not None
    assert (found.layers, found.shape, found.parameters) == (preset.layers, preset.shape, preset.parameters)
    assert found.context_tokens == 8192
    assert found.weight_format.startswith("GGUF, mostly Q4_1")
    assert 0.97 < found.weights.total_bytes / path.stat().st_size < 1  # the rest is the vocabulary


def test_tensors_are_sized_by_their_type_and_the_vocabulary_is_only_counted(tmp_path: Path) -> None:
    header = read_header(write(tmp_path, gguf(LLAMA, [EMBEDDING, tensor("blk.0.attn_q.weight", (256, 2), 12)])))
    assert [(each.type_name, each.size_bytes) for each in header.tensors] == [("F16", 384), ("Q4_K", 288)]
    assert header.metadata["tokenizer.ggml.tokens"] == 3


def test_grouped_heads_are_read(tmp_path: Path) -> None:
    assert layers(tmp_path, LLAMA) == (Layers(4, heads=2, key_width=8, value_width=8),)


def test_head_widths_and_heads_by_layer_are_read(tmp_path: Path) -> None:
    metadata = {
        **LLAMA,
        "llama.attention.key_length": 16,
        "llama.attention.value_length": 12,
        "llama.attention.head_count_kv": [2, 2, 1, 2],
    }
    assert set(layers(tmp_path, metadata)) == {Layers(3, 2, 16, 12), Layers(1, 1, 16, 12)}


def test_windows_follow_the_pattern_of_the_file_or_of_the_family(tmp_path: Path) -> None:
    sliding = {"attention.sliding_window": 512}
    assert set(layers(tmp_path, family("gemma2", **sliding))) == {Layers(2, 2, 8, 8, 512), Layers(2, 2, 8, 8)}
    listed = family("gemma4", **sliding, **{"attention.sliding_window_pattern": [True, True, True, False]})
    assert set(layers(tmp_path, listed)) == {Layers(3, 2, 8, 8, 512), Layers(1, 2, 8, 8)}
    assert layers(tmp_path, family("phi3", **sliding)) == (Layers(4, 2, 8, 8),)


def test_latent_attention_is_read_where_llama_cpp_uses_it(tmp_path: Path) -> None:
    metadata = family(
        "deepseek2",
        **{"attention.key_length_mla": 192, "attention.kv_lora_rank": 512, "rope.dimension_count": 64},
    )
    assert layers(tmp_path, metadata) == (latent(4, 512, 64),)


def test_idle_experts_are_told_apart(tmp_path: Path) -> None:
    metadata = {**LLAMA, "llama.expert_count": 8, "llama.expert_used_count": 2}
    experts = tensor("blk.0.ffn_up_exps.weight", (32, 100), 8)
    found = read_gguf(write(tmp_path, gguf(metadata, [EMBEDDING, experts])))
    assert (found.parameters, found.active_parameters) == (192 + 3200, 192 + 800)


def test_a_split_model_is_the_sum_of_its_parts(tmp_path: Path) -> None:
    part = [tensor("blk.0.attn_q.weight", (32, 2), 8)]
    first = write(tmp_path, gguf({**LLAMA, "split.count": 2}, [EMBEDDING]), "m-00001-of-00002.gguf")
    with pytest.raises(ConfigError, match=r"its part m-00002-of-00002\.gguf is not beside it"):
        read_gguf(first)
    second = write(tmp_path, gguf({"split.count": 2}, part), "m-00002-of-00002.gguf")
    assert read_gguf(first).weights.total_bytes == 384 + 68
    with pytest.raises(ConfigError, match="give its first part"):
        read_gguf(second)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (gguf(LLAMA, [EMBEDDING])[:-3], "ends in the middle"),
        (gguf(LLAMA, version=1), "version 1"),
        (gguf(LLAMA, [tensor("x", (4,), 99)]), "type 99"),
        (b"GGUF\x03\x00\x00\x00" + b"\xff" * 16, "items of one kind"),
        (b"PK\x03\x04", "does not begin with GGUF"),
        (gguf({**LLAMA, "llama.ssm.state_size": 16}), "recurrent"),
        (gguf({"general.architecture": "clip"}), r"no clip\.block_count"),
        (gguf({**LLAMA, "llama.attention.head_count": 0}), "does not describe a language model"),
    ],
)
def test_a_file_that_cannot_be_planned_is_told_why(content: bytes, complaint: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=complaint):
        read_gguf(write(tmp_path, content))


def test_gguf_weights_are_as_they_are(tmp_path: Path) -> None:
    path = str(write(tmp_path, gguf(LLAMA, [EMBEDDING])))
    assert find_model(path).engine == "llama.cpp"
    with pytest.raises(ConfigError, match="--weight-dtype has no meaning"):
        find_model(path, "fp8")
    with pytest.raises(ConfigError, match="cannot be read"):
        read_gguf(tmp_path / "absent.gguf")
