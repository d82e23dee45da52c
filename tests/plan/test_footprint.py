"""The memory rows of SPEC Appendix C, and figures that vLLM itself has published in start logs."""

from __future__ import annotations

from typing import Any

import pytest

from tidegate.plan.footprint import Footprint, Serving, pool_bytes, recommended_sequences, slots_in
from tidegate.plan.gpus import GIB, MIB, gpu
from tidegate.plan.hf_config import model_of
from tidegate.plan.known_models import CONFIGS, known_model

SLOT = 256 * MIB


def footprint(model: str, on: str, **serving: Any) -> Footprint:
    found = known_model(model)
    assert found is not None
    return Footprint(found, gpu(on), Serving(**serving))


def test_the_sources_rule_gives_96_slots_of_which_76_are_recommended() -> None:
    slots = slots_in(24 * GIB, SLOT)
    assert (slots, recommended_sequences(slots)) == (96, 76)
    assert 256 * SLOT == 64 * GIB
    assert min(256, slots) == 96


def test_after_weights_an_a10_has_20_slots() -> None:
    pool = pool_bytes(23_028 * MIB, 0.9, 14_523 * MIB, 1_024 * MIB)
    assert pool // MIB == 5_178
    assert slots_in(pool, SLOT) == 20


def test_the_whole_plan_of_an_a10_comes_to_20_slots_and_48_with_two() -> None:
    alone = footprint("qwen2-7b", "A10", utilization=0.9)
    assert alone.weights_bytes / MIB == pytest.approx(14_523, abs=5)
    assert alone.slots == 20
    assert footprint("qwen2-7b", "A10", utilization=0.9, tensor_parallel=2).slots == pytest.approx(48, abs=1)


@pytest.mark.parametrize(("tokens", "stable"), [(4096, 180), (8192, 95), (16384, 48)])
@pytest.mark.parametrize("card", ["A100-80", "H100"])
def test_80_gb_hold_the_concurrency_that_was_measured(tokens: int, stable: int, card: str) -> None:
    """Stable concurrency of a 7B model (S3-54): what is recommended, 80 % of the sequences that fit."""
    found = recommended_sequences(footprint("qwen2-7b", card).sequences(tokens))
    assert found == pytest.approx(stable, rel=0.15)


def test_doubling_the_length_halves_the_sequences() -> None:
    plan = footprint("qwen2-7b", "A100-80")
    held = [plan.sequences(tokens) * tokens for tokens in (4096, 8192, 16384)]
    assert max(held) / min(held) < 1.02


def test_vllms_published_pool_is_met_within_3_percent() -> None:
    """Llama 3.1 8B in 79.25 GiB at 0.92: 56.21 GiB, 460 496 tokens (vLLM's start log, October 2026)."""
    plan = footprint("llama-3.1-8b", "A100-80", utilization=0.92, max_sequences=256)
    assert plan.pool_bytes / GIB == pytest.approx(56.21, rel=0.03)
    assert plan.kv_tokens == pytest.approx(460_496, rel=0.03)


@pytest.mark.parametrize(("model", "sequences", "gib"), [("llama-3.1-8b", 256, 1.19), ("qwen2.5-7b", 256, 1.42)])
def test_the_samplers_peak_is_that_of_published_logs(model: str, sequences: int, gib: float) -> None:
    plan = footprint(model, "H200", max_sequences=sequences)
    assert plan.activations_bytes / GIB == pytest.approx(gib, rel=0.02)


def test_the_layers_peak_is_that_of_a_published_log() -> None:
    """Qwen2.5 1.5B on a T4 with 32 768 tokens a step: 2.02 GiB; its 1.54 B parameters took 2.89 GiB."""
    config = {
        **CONFIGS["qwen2.5-7b"],
        "hidden_size": 1536, "num_attention_heads": 12, "num_key_value_heads": 2, "intermediate_size": 8960,
        "vocab_size": 151936, "tie_word_embeddings": True,
    }  # fmt: skip
    plan = Footprint(model_of(config, "m", "x"), gpu("T4"), Serving(max_sequences=256, prefill_tokens=32768))
    assert plan.weights_bytes / GIB == pytest.approx(2.89, rel=0.01)
    assert plan.activations_bytes / GIB == pytest.approx(2.02, rel=0.05)


def test_the_recommended_sequences_leave_room_for_their_own_sampler() -> None:
    plan = footprint("qwen2-7b", "A100-80")
    more = footprint("qwen2-7b", "A100-80", max_sequences=plan.max_sequences + 1)
    assert plan.max_sequences <= recommended_sequences(plan.slots)
    assert plan.max_sequences + 1 > recommended_sequences(more.slots)


def test_of_the_sequences_asked_one_per_slot_is_run() -> None:
    plan = footprint("qwen2-7b", "A10", max_sequences=256)
    assert plan.max_sequences == plan.slots == footprint("qwen2-7b", "A10").slots
    assert footprint("qwen2-7b", "A10", max_sequences=3).max_sequences == 3
    assert footprint("llama-3-70b", "A10", max_sequences=3).max_sequences == 1


def test_measured_figures_replace_the_estimates() -> None:
    plan = footprint("qwen2-7b", "A10", activations_mib=100, context_mib=200)
    assert (plan.activations_bytes, plan.context_bytes) == (100 * MIB, 200 * MIB)


def test_the_parts_make_up_the_budget() -> None:
    plan = footprint("gemma-2-9b", "H100", tensor_parallel=2, stages=2)
    parts = plan.weights_bytes + plan.activations_bytes + plan.context_bytes + plan.pool_bytes
    assert parts == plan.budget_bytes


def test_pipeline_stages_hold_one_end_of_the_model_each() -> None:
    whole, half = footprint("llama-3-70b", "A100-80"), footprint("llama-3-70b", "A100-80", stages=2)
    ends = whole.model.weights.embedding_bytes
    assert half.weights_bytes == pytest.approx((whole.weights_bytes - 2 * ends) / 2 + ends, rel=1e-6)


def test_tokens_beyond_every_window_cost_only_what_looks_to_the_beginning() -> None:
    plan = footprint("gemma-2-9b", "H100")
    assert plan.late_token_bytes * 2 == plan.token_bytes
    assert footprint("mistral-7b", "H100").late_token_bytes == 0


def test_a_slot_of_256_mib_holds_one_sequence_of_4096_tokens() -> None:
    plan = footprint("qwen2-7b", "A10")
    assert plan.slot_tokens == 4681
    assert [plan.slots_of_sequence(tokens) for tokens in (4096, 8192)] == [1, 2]


def test_a_checkpoint_with_an_fp8_cache_is_planned_with_it_unless_told_otherwise() -> None:
    found = known_model("qwen2-7b")
    assert found is not None
    asks = type(found)(found.name, found.source, found.layers, found.shape, 4096, found.weights, kv_dtype="fp8")
    assert Footprint(asks, gpu("A10"), Serving()).token_bytes == 28_672
    assert Footprint(asks, gpu("A10"), Serving(kv_dtype="fp16")).token_bytes == 57_344
