from __future__ import annotations

import pytest

from tidegate.plan.known_models import CONFIGS, PARAMETERS, known_model, unknown_model
from tidegate.plan.layers import token_bytes
from tidegate.plan.model import Model
from tidegate.plan.precision import kv_bits


def preset(name: str) -> Model:
    found = known_model(name)
    assert found is not None
    return found


def kv(name: str, dtype: str = "auto", tensor_parallel: int = 1) -> int:
    return token_bytes(preset(name).layers, kv_bits(dtype), tensor_parallel)


@pytest.mark.parametrize("name", CONFIGS)
def test_the_parameters_counted_are_those_published(name: str) -> None:
    assert preset(name).parameters == PARAMETERS[name]


@pytest.mark.parametrize(
    ("name", "active_billions"),
    [("mixtral-8x7b", 12.88), ("qwen3-30b-a3b", 3.35), ("deepseek-v2-lite", 2.66), ("deepseek-v3", 37.55)],
)
def test_with_experts_one_token_uses_few_of_the_parameters(name: str, active_billions: float) -> None:
    assert (preset(name).active_parameters or 0) / 1e9 == pytest.approx(active_billions, abs=0.01)


def test_kv_per_token_counts_kv_heads_and_not_query_heads() -> None:
    assert kv("qwen2-7b") == 57_344  # SPEC Appendix C; with 28 query heads it would be 7 times as much
    assert kv("llama-2-7b") == 512 * 1024
    assert kv("llama-3-8b") == 128 * 1024


def test_a_latent_layer_keeps_one_vector_for_all_heads() -> None:
    assert kv("deepseek-v3") == 61 * (512 + 64) * 2
    assert kv("deepseek-v3", "fp8") == 61 * (512 + 64)


def test_tensor_parallelism_divides_kv_heads_until_there_is_one_each() -> None:
    assert [kv("qwen2-7b", tensor_parallel=size) for size in (1, 2, 4)] == [57_344, 28_672, 14_336]
    assert kv("gemma-3-1b", tensor_parallel=4) == kv("gemma-3-1b")
    assert kv("deepseek-v3", tensor_parallel=8) == kv("deepseek-v3")


def test_an_fp8_cache_is_half_as_large() -> None:
    assert kv("qwen2-7b", "fp8") == 57_344 // 2


@pytest.mark.parametrize("written", ["qwen2-7b", "Qwen/Qwen2-7B-Instruct", "QWEN2_7B"])
def test_presets_are_found_however_their_name_is_written(written: str) -> None:
    assert preset(written).name == "qwen2-7b"


def test_an_unknown_name_is_answered_with_the_nearest_or_all() -> None:
    assert known_model("qwen9") is None
    assert "did you mean llama-3-8b?" in str(unknown_model("lama-3-8b"))
    assert "presets: smollm2-135m" in str(unknown_model("zzz"))


def test_quantized_weights_are_smaller_but_not_their_embeddings() -> None:
    whole, small = preset("llama-3-8b").weights, known_model("llama-3-8b", "awq")
    assert small is not None
    assert small.weights.embedding_bytes == whole.embedding_bytes
    assert small.weights.total_bytes / whole.total_bytes == pytest.approx(0.354, abs=0.01)


def test_gpt_oss_has_four_bit_experts_and_half_its_layers_look_back_128_tokens() -> None:
    model = preset("gpt-oss-20b")
    assert {(each.count, each.window_tokens) for each in model.layers} == {(12, 128), (12, None)}
    assert model.weights.total_bytes / 2**30 == pytest.approx(12.8, abs=0.1)  # 13.8 GB of safetensors
