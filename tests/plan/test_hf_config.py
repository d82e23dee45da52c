from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tidegate.errors import ConfigError
from tidegate.plan.hf_config import model_of, read_config, windows
from tidegate.plan.known_models import CONFIGS
from tidegate.plan.model_source import find_model


def config(name: str = "llama-3-8b", **changes: Any) -> dict[str, Any]:
    return {**CONFIGS[name], **changes}


def written(folder: Path, value: Any) -> Path:
    path = folder / "config.json"
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    return path


def refused(value: dict[str, Any]) -> str:
    with pytest.raises(ConfigError) as raised:
        model_of(value, "m", "config.json")
    return str(raised.value)


def test_a_folder_a_file_and_a_preset_name_the_same_model(tmp_path: Path) -> None:
    path = written(tmp_path, config())
    found = [find_model(name).layers for name in (str(tmp_path), str(path), "llama-3-8b")]
    assert found[0] == found[1] == found[2]


def test_weights_beside_the_file_go_before_counted_ones(tmp_path: Path) -> None:
    path = written(tmp_path, config())
    (tmp_path / "model-1.safetensors").write_bytes(b"0" * 1000)
    (tmp_path / "model-2.safetensors").write_bytes(b"0" * 500)
    assert read_config(path).weights.total_bytes == 1500
    assert read_config(path, "fp16").weights.total_bytes == 8_030_261_248 * 2


def test_a_family_that_cannot_be_counted_asks_for_its_weights(tmp_path: Path) -> None:
    path = written(tmp_path, config(model_type="falcon"))
    with pytest.raises(ConfigError, match=r"'falcon' cannot be counted.*--weights-gib"):
        find_model(str(path))
    assert find_model(str(path), weights_gib=2.0).weights.total_bytes == 2 * 2**30
    (tmp_path / "model.safetensors").write_bytes(b"0" * 1000)
    assert find_model(str(path)).weights.total_bytes == 1000


def test_the_text_part_of_a_multimodal_model_is_planned_and_that_is_said() -> None:
    found = model_of({"model_type": "gemma3", "text_config": CONFIGS["gemma-3-1b"], "vision_config": {}}, "m", "x")
    assert found.parameters == 999_885_952
    assert any("vision" in note for note in found.notes)


def test_windows_follow_the_rule_of_the_family() -> None:
    assert windows(config(num_hidden_layers=2)) == [None, None]
    assert windows(config("mistral-7b", num_hidden_layers=2)) == [4096, 4096]
    assert windows(config("gemma-2-9b", num_hidden_layers=4)) == [4096, None, 4096, None]
    assert windows(config("gemma-3-1b", num_hidden_layers=7)) == [512] * 5 + [None, 512]
    assert windows(config("qwen2-7b", num_hidden_layers=2)) == [None, None]
    late = config("qwen2-7b", num_hidden_layers=4, use_sliding_window=True, max_window_layers=3)
    assert windows(late) == [None, None, None, 131072]


def test_a_list_of_layer_types_goes_before_the_rule_of_the_family() -> None:
    types = ["full_attention", "sliding_attention"]
    assert windows(config("gemma-2-9b", num_hidden_layers=2, layer_types=types)) == [None, 4096]
    assert "names 2 layers of 42" in refused(config("gemma-2-9b", layer_types=types))


@pytest.mark.parametrize(
    ("quantization", "gib"),
    [
        (None, 14.96),
        ({"quant_method": "fp8"}, 8.46),
        ({"quant_method": "awq", "bits": 4, "group_size": 128}, 5.33),
        ({"quant_method": "gptq", "bits": 8, "group_size": -1}, 8.46),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, 5.61),
        ({"quant_method": "bitsandbytes", "load_in_8bit": True}, 8.46),
        (
            {
                "quant_method": "compressed-tensors",
                "config_groups": {"g": {"weights": {"num_bits": 4, "group_size": 128}}},
            },
            5.31,
        ),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, 5.61),
    ],
)
def test_quantized_checkpoints_are_sized_by_their_format(quantization: dict[str, Any] | None, gib: float) -> None:
    found = model_of(config(quantization_config=quantization), "m", "x")
    assert found.weights.total_bytes / 2**30 == pytest.approx(gib, abs=0.02)


def test_a_checkpoint_may_ask_for_an_fp8_cache() -> None:
    scheme = {"quant_method": "compressed-tensors", "kv_cache_scheme": {"num_bits": 8, "type": "float"}}
    assert model_of(config(quantization_config=scheme), "m", "x").kv_dtype == "fp8"


def test_what_the_planner_cannot_size_is_refused_with_the_reason() -> None:
    assert "linear_attention" in refused(config(layer_types=["linear_attention"] * 32))
    assert "mamba_d_state" in refused(config(mamba_d_state=16))
    assert "attention_chunk_size" in refused(config(attention_chunk_size=8192))
    assert "encoder-decoder" in refused(config(is_encoder_decoder=True))
    assert "without hidden_size" in refused({"num_hidden_layers": 2, "num_attention_heads": 2, "vocab_size": 9})


def test_files_that_are_no_configuration_are_told_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="not JSON"):
        read_config(written(tmp_path, "{"))
    with pytest.raises(ConfigError, match="not a JSON object"):
        read_config(written(tmp_path, "[]"))
    with pytest.raises(ConfigError, match="does not describe a model"):
        read_config(written(tmp_path, config(hidden_size="wide")))
    with pytest.raises(ConfigError, match="cannot be read"):
        read_config(tmp_path / "absent.json")
    (tmp_path / "config.json").unlink()
    with pytest.raises(ConfigError, match=r"no config\.json in this folder"):
        find_model(str(tmp_path))


def test_a_shared_expert_is_counted_beside_the_routed_ones() -> None:
    """Qwen1.5-MoE-A2.7B, whose publisher states 14.3 billion parameters, 2.7 of them active."""
    moe = {
        "model_type": "qwen2_moe", "num_hidden_layers": 24, "hidden_size": 2048, "num_attention_heads": 16,
        "num_key_value_heads": 16, "intermediate_size": 5632, "vocab_size": 151936, "max_position_embeddings": 8192,
        "num_experts": 60, "num_experts_per_tok": 4, "moe_intermediate_size": 1408,
        "shared_expert_intermediate_size": 5632, "use_sliding_window": False,
    }  # fmt: skip
    found = model_of(moe, "m", "x")
    assert found.parameters == 14_315_784_192
    assert (found.active_parameters or 0) / 1e9 == pytest.approx(2.69, abs=0.01)
