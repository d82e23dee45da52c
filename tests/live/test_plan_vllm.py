"""The planner's arithmetic against vLLM's own: its model classes, its KV specs, its blocks.

Needs an interpreter with vLLM (the CPU build will do), named by TIDEGATE_VLLM_PYTHON. No weights, no GPU.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tidegate.plan.gpus import GIB
from tidegate.plan.known_models import CONFIGS, known_model
from tidegate.plan.model import Model
from tidegate.plan.paging import Paging, paging
from tidegate.plan.precision import kv_bits

pytestmark = pytest.mark.live

VARIABLE = "TIDEGATE_VLLM_PYTHON"
TOLERANCE = 0.03
POOL_BYTES = 50 * GIB
BLOCK_TOKENS = 128
"""vLLM's CPU build takes multiples of 32 only."""
PREFILL_TOKENS = 2048

CLASSES = {
    "llama": "LlamaForCausalLM",
    "mistral": "MistralForCausalLM",
    "mixtral": "MixtralForCausalLM",
    "phi3": "Phi3ForCausalLM",
    "qwen2": "Qwen2ForCausalLM",
    "qwen3": "Qwen3ForCausalLM",
    "qwen3_moe": "Qwen3MoeForCausalLM",
    "gemma2": "Gemma2ForCausalLM",
    "gemma3_text": "Gemma3ForCausalLM",
    "gpt_oss": "GptOssForCausalLM",
    "deepseek_v2": "DeepseekV2ForCausalLM",
    "deepseek_v3": "DeepseekV3ForCausalLM",
}
KV_DTYPES = {"auto": tuple(CONFIGS), "fp8": ("qwen2-7b", "gemma-2-9b")}


def case(name: str, kv_dtype: str) -> dict[str, Any]:
    """One model. Quantized checkpoints are built in 16 bits: their kernels are not on every platform."""
    config = {key: value for key, value in CONFIGS[name].items() if key != "quantization_config"}
    activation = "gelu_pytorch_tanh" if name.startswith("gemma") else "silu"
    return {
        "name": f"{name} {kv_dtype}",
        "config": {**config, "architectures": [CLASSES[config["model_type"]]], "hidden_act": activation},
        "max_model_len": min(8192, config["max_position_embeddings"]),
        "block_tokens": BLOCK_TOKENS,
        "prefill_tokens": PREFILL_TOKENS,
        "pool_bytes": POOL_BYTES,
        "kv_dtype": kv_dtype,
    }


CASES = {
    each["name"]: each for each in (case(name, kv_dtype) for kv_dtype, names in KV_DTYPES.items() for name in names)
}


@pytest.fixture(scope="module")
def told() -> dict[str, dict[str, Any]]:
    """What vLLM says, by case: one process for all of them, as its imports take longest."""
    if not (python := os.environ.get(VARIABLE)):
        pytest.skip(f"{VARIABLE} names no interpreter with vLLM")
    quiet = {"VLLM_LOGGING_LEVEL": "ERROR", "HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
    ended = subprocess.run(
        [python, str(Path(__file__).with_name("vllm_capacity.py"))],
        input=json.dumps(list(CASES.values())),
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **quiet, "VLLM_NO_USAGE_STATS": "1"},
    )
    lines = [line.removeprefix("CASE ") for line in ended.stdout.splitlines() if line.startswith("CASE ")]
    assert len(lines) == len(CASES), ended.stderr[-2000:]
    return {each["name"]: each for each in map(json.loads, lines)}


def planned(name: str, in_flight_tokens: int) -> tuple[Model, Paging]:
    """Our figures, with as many tokens in flight as this vLLM: its CPU build does not overlap steps."""
    preset, kv_dtype = name.split(" ")
    model = known_model(preset)
    assert model is not None
    laid = paging(model.layers, kv_bits(kv_dtype), block_tokens=BLOCK_TOKENS, prefill_tokens=in_flight_tokens // 2)
    return model, laid


@pytest.mark.parametrize("name", CASES)
def test_kv_blocks_and_concurrency_are_those_of_vllm(name: str, told: dict[str, dict[str, Any]]) -> None:
    theirs = told[name]
    assert "error" not in theirs, theirs["error"]
    _, ours = planned(name, theirs["in_flight_tokens"])
    blocks = ours.blocks_in(POOL_BYTES)
    concurrency = blocks / ours.blocks_of_sequence(CASES[name]["max_model_len"])
    assert len(ours.groups) == theirs["groups"]
    assert blocks == pytest.approx(theirs["blocks"], rel=TOLERANCE)
    assert concurrency == pytest.approx(theirs["concurrency"], rel=TOLERANCE)


@pytest.mark.parametrize("name", [name for name in CASES if name.endswith("auto")])
def test_parameters_are_those_of_the_model_vllm_builds(name: str, told: dict[str, dict[str, Any]]) -> None:
    theirs = told[name]
    assert "error" not in theirs, theirs["error"]
    model, _ = planned(name, theirs["in_flight_tokens"])
    assert model.parameters == theirs["parameters"]
    assert model.layer_count == theirs["layers"]
