from __future__ import annotations

from typing import Any

from tests.plan.planned import footprint
from tidegate.plan.footprint import Footprint
from tidegate.plan.remedies import problem, remedies


def told(model: str, on: str, tokens: int, count: int | None = None, **serving: Any) -> list[str]:
    def rewritten(dtype: str) -> Footprint:
        return footprint(model, on, weight_dtype=dtype, **serving)

    return remedies(footprint(model, on, **serving), tokens, count, rewritten)


def test_what_fits_is_no_problem() -> None:
    assert problem(footprint("qwen2-7b", "A10"), 8192) is None


def test_weights_that_do_not_fit_are_told_with_both_figures() -> None:
    found = problem(footprint("llama-3-8b", "T4"), 2048)
    assert found is not None
    assert "take 15.9 GiB of each T4, and the engine may use 12.9 GiB" in found


def test_a_sequence_that_does_not_fit_is_told_with_the_longest_that_does() -> None:
    plan = footprint("qwen3-8b", "A10")
    found = problem(plan, 32768)
    assert found is not None
    assert "needs 4608 MiB" in found
    assert f"the longest sequence that fits has {plan.longest(32768)} tokens" in found


def test_every_remedy_that_is_named_makes_it_fit() -> None:
    assert footprint("qwen3-8b", "A10").longest(32768) >= 22784
    assert footprint("qwen3-8b", "A10", kv_dtype="fp8").holds(32768)
    assert footprint("qwen3-8b", "A10", tensor_parallel=2).sequences(32768) == 4
    assert footprint("qwen3-8b", "A10", weight_dtype="fp8").sequences(32768) == 2
    assert footprint("qwen3-8b", "RTX 5090").sequences(32768) == 2
    assert [each.split(":")[0] for each in told("qwen3-8b", "A10", 32768)] == [
        "--max-model-len 22784",
        "--kv-cache-dtype fp8",
        "--tensor-parallel-size 2",
        "FP8 weights",
        "a larger GPU",
    ]


def test_more_gpus_than_there_are_is_said_to_be_so() -> None:
    (first, *_) = told("llama-3-70b", "A10", 8192, count=4)
    assert first.startswith("--tensor-parallel-size 8: 8 GPUs (4 at hand)")


def test_a_higher_utilization_is_named_only_if_it_is_enough() -> None:
    assert not footprint("llama-3-8b", "A10", utilization=0.75).holds(16384)
    assert footprint("llama-3-8b", "A10", utilization=0.88).holds(16384)
    raised = told("llama-3-8b", "A10", 16384, utilization=0.75)
    assert any(each.startswith("--gpu-memory-utilization 0.88") for each in raised)
    assert not any(each.startswith("--gpu-memory-utilization") for each in told("llama-3-8b", "T4", 4096))


def test_quantized_weights_are_named_from_the_lightest_loss_on() -> None:
    assert any(each.startswith("FP8 weights: 8.5 GiB") for each in told("llama-3-8b", "T4", 4096))
    assert any(each.startswith("4-bit weights") for each in told("llama-3-8b", "9000", 4096))


def test_where_no_single_change_helps_that_is_said() -> None:
    assert told("deepseek-v3", "T4", 4096) == [
        "no single change makes it fit: combine tensor parallelism with quantized weights, or take a smaller model"
    ]


def test_weights_that_cannot_be_counted_anew_are_left_as_they_are() -> None:
    found = remedies(footprint("llama-3-8b", "T4"), 4096, None, lambda _dtype: None)
    assert not any("weights:" in each for each in found)
