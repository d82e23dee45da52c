from __future__ import annotations

from tests.plan.planned import footprint
from tidegate.plan.parallel import advice, choices, fewest_gpus


def test_only_sizes_that_divide_the_heads_are_offered() -> None:
    labels = [each.label for each in choices(footprint("qwen2-7b", "A10"), 4096, None)]
    assert labels == ["TP=1", "TP=2", "TP=1 PP=2", "TP=4", "TP=1 PP=4", "TP=1 PP=8"]  # 28 heads, 4 KV heads


def test_a_latent_model_is_divided_by_its_query_heads_alone() -> None:
    labels = [each.label for each in choices(footprint("deepseek-v3", "H200"), 4096, 8)]
    assert "TP=8" in labels


def test_no_more_gpus_are_used_than_there_are() -> None:
    assert max(each.gpus for each in choices(footprint("llama-3-8b", "A10"), 4096, 2)) == 2


def test_the_least_that_fits_is_found() -> None:
    least = fewest_gpus(choices(footprint("llama-3-70b", "A100-80"), 8192, 8))
    assert least is not None
    assert least.label == "TP=2"
    assert fewest_gpus(choices(footprint("llama-3-70b", "T4"), 8192, 2)) is None


def test_what_was_asked_for_is_always_among_the_choices() -> None:
    labels = [each.label for each in choices(footprint("llama-3-8b", "A10", tensor_parallel=2, stages=2), 4096, 4)]
    assert "TP=2 PP=2" in labels


def test_the_gain_of_more_gpus_is_told_against_replicas() -> None:
    told = advice(choices(footprint("qwen2-7b", "A10"), 4096, 4), 4)
    assert told[0].startswith("TP=1 is the least that holds 4096 tokens: 18 sequences on 1 GPU")
    assert "against 72 as replicas of TP=1" in told[1]
    assert told[2].startswith("4 GPUs carry 4 replicas of TP=1")


def test_where_weights_are_small_no_larger_tp_is_urged() -> None:
    assert len(advice(choices(footprint("smollm2-135m", "A10"), 4096, 1), 1)) == 1


def test_pipeline_stages_are_named_where_heads_do_not_divide() -> None:
    odd = footprint("smollm2-135m", "1000", context_mib=400, activations_mib=100)  # 9 heads, 3 KV heads
    told = advice(choices(odd, 8192, 2), 2)
    assert told[0].startswith("TP=1 PP=2 is the least")
    assert any(each.startswith("PP, as no TP size") for each in told)


def test_nothing_is_advised_where_nothing_fits() -> None:
    assert advice(choices(footprint("llama-3-70b", "T4"), 8192, 2), 2) == []
