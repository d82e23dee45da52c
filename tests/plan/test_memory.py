from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.plan.gguf_files import EMBEDDING, LLAMA, gguf, write
from tests.plan.planned import footprint, plan, traffic
from tidegate.errors import ConfigError
from tidegate.plan.footprint import Footprint, Serving
from tidegate.plan.gguf_model import read_gguf
from tidegate.plan.gpus import gpu
from tidegate.plan.memory import MemoryPlan, spread_over
from tidegate.plan.memory_report import SCHEMA, report


def keys(value: Any, prefix: str = "") -> set[str]:
    """Dotted names of everything in a report."""
    if isinstance(value, list):
        return set().union(*(keys(each, f"{prefix}[]") for each in value)) if value else {f"{prefix}[]"}
    if isinstance(value, dict):
        return set().union(*(keys(each, f"{prefix}.{name}" if prefix else name) for name, each in value.items()))
    return {prefix}


def is_defined(name: str) -> bool:
    """By an entry of its own, or by that of what it is in, which then names it."""
    if name in SCHEMA:
        return True
    parent, _, last = name.rpartition(".")
    return bool(parent) and parent in SCHEMA and last in SCHEMA[parent]


@pytest.mark.parametrize("asked", [plan("gemma-2-9b", "A10"), plan("llama-3-70b", "T4", 4096, count=2)])
def test_every_figure_has_its_definition(asked: MemoryPlan) -> None:
    told = report(asked)
    assert told.keys() <= {name.partition(".")[0].removesuffix("[]") for name in SCHEMA}
    free_text = {"pinning_flags[]", "problems[]", "remedies[]", "warnings[]", "advice[]", "notes[]"}
    assert {name for name in keys(told) - free_text if not is_defined(name)} == set()


def test_a_definition_without_a_figure_would_be_noticed() -> None:
    told = report(plan("qwen2-7b", "A10"))
    assert {name.partition(".")[0].removesuffix("[]") for name in SCHEMA} == told.keys()


def test_the_report_adds_up() -> None:
    told = report(plan("qwen2-7b", "A10", 4096, utilization=0.9))
    memory, slots = told["memory"], told["slots"]
    assert memory["weights"] + memory["activations"] + memory["context"] + memory["kv_pool"] == pytest.approx(
        memory["budget"], abs=0.3
    )
    assert (slots["slots"], slots["recommended_max_num_seqs"], slots["slot_tokens"]) == (20, 16, 4681)
    assert told["contexts"] == [{"tokens": 4096, "sequence_mib": 224.0, "slots": 1, "sequences": 23, "recommended": 18}]
    assert told["replica"]["bytes_per_token"] == 57_344
    assert told["engine_flags"] == (
        "--gpu-memory-utilization 0.9 --max-model-len 4096 --max-num-seqs 16 --tensor-parallel-size 1"
    )


def test_more_sequences_than_slots_are_clamped_with_one_warning() -> None:
    told = report(plan("qwen2-7b", "A10", 4096, max_sequences=256))
    assert told["slots"]["asked_max_num_seqs"] == 256
    assert told["slots"]["max_num_seqs"] == told["slots"]["slots"]
    (warning,) = told["warnings"]
    assert warning.startswith(f"256 sequences asked, {told['slots']['slots']} slots of 256 MiB")


def test_the_pool_can_be_pinned_by_bytes_or_by_blocks() -> None:
    told = report(plan("qwen2-7b", "A10"))
    assert told["pinning_flags"] == [
        f"--kv-cache-memory-bytes {told['replica']['kv_pool_bytes']}",
        f"--num-gpu-blocks-override {told['kv']['blocks']}",
    ]
    assert report(plan("llama-3-70b", "A10"))["pinning_flags"] == []


def test_fewer_sequences_than_slots_are_left_alone() -> None:
    told = report(plan("qwen2-7b", "A10", 4096, max_sequences=4))
    assert (told["slots"]["max_num_seqs"], told["warnings"]) == (4, [])


def test_the_planned_length_is_given_or_of_the_traffic_or_the_default() -> None:
    asked = plan("qwen2-7b", "A10")
    assert (asked.max_model_len, asked.max_model_len_from.split(";")[0]) == (8192, "default")
    told = replace(asked, traffic=traffic((1000, 100), (2000, 200)))
    assert (told.max_model_len, told.max_model_len_from) == (2640, "P99 × 1.2")
    given = replace(told, contexts=(1024, 4096))
    assert (given.max_model_len, given.max_model_len_from) == (4096, "given")
    assert given.warnings() == ["4096 tokens planned; the traffic's P99 × 1.2 is 2640"]


def test_the_traffic_cannot_ask_for_more_than_the_model_has() -> None:
    long = replace(plan("llama-3-8b", "A100-80"), traffic=traffic((9000, 1000)))
    assert long.max_model_len == 8192
    assert plan("llama-2-7b", "A100-80").max_model_len == 4096


def test_a_length_beyond_the_model_and_a_risky_utilization_are_warned_of() -> None:
    told = plan("llama-3-8b", "A100-80", 16384, utilization=0.95).warnings()
    assert "0.85 to 0.88 is safe" in told[0]
    assert "more than the 8192" in told[1]


def test_contradictions_are_refused_all_at_once() -> None:
    with pytest.raises(ConfigError) as raised:
        plan("qwen2-7b", "A10", count=2, tensor_parallel=3, stages=40, utilization=1.5, kv_dtype="fp7")
    assert [problem.split(":")[0] for problem in raised.value.problems] == [
        "--kv-dtype",
        "--utilization",
        "--tp",
        "--pp",
        "--tp × --pp",
    ]
    assert "possible: 1, 2, 4" in raised.value.problems[2]


def test_full_length_sequences_that_crowd_each_other_are_told_of() -> None:
    (told,) = plan("qwen2-7b", "A10", 16384).crowding()
    assert told.startswith("4 of 12 sequences fit at full length")
    assert plan("qwen2-7b", "A10", 4096).crowding() == []


def test_the_fewest_gpus_at_hand_are_taken() -> None:
    spread = spread_over(plan("llama-3-70b", "A100-80", count=8))
    assert spread.footprint.serving.tensor_parallel == 2
    assert spread.fits
    lighter = spread.rewritten("awq")
    assert lighter is not None
    assert lighter.serving.tensor_parallel == 2
    alone = plan("qwen2-7b", "A10", count=8)
    assert spread_over(alone).footprint == alone.footprint
    hopeless = plan("llama-3-70b", "T4", count=2)
    assert spread_over(hopeless) is hopeless


def test_llama_cpp_is_given_what_fits_at_full_length(tmp_path: Any) -> None:
    model = read_gguf(write(tmp_path, gguf(LLAMA, [EMBEDDING])))
    base = Footprint(model, gpu("1000"), Serving(slot_mib=1, kv_dtype="q8_0", activations_mib=0, context_mib=855))
    asked = MemoryPlan(base, lambda _dtype: None, (16384,))
    told = report(asked)
    assert told["engine"] == "llama.cpp"
    assert asked.max_num_seqs == base.sequences(16384) < base.slots
    assert told["engine_flags"] == "--parallel 2 --ctx-size 32768 --cache-type-k q8_0 --cache-type-v q8_0"


def test_vllm_is_told_of_stages_and_of_the_cache_type() -> None:
    flags = report(plan("llama-3-8b", "A10", 4096, stages=2, kv_dtype="fp8"))["engine_flags"]
    assert flags.endswith("--pipeline-parallel-size 2 --kv-cache-dtype fp8")


def test_default_lengths_stop_where_the_model_does() -> None:
    assert plan("llama-2-7b", "A100-80").rows == [2048, 4096]
    assert plan("phi-3-mini", "A100-80", 512, 512).rows == [512]
    assert footprint("llama-2-7b", "A100-80").holds(4096)
