from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.plan.known_models import CONFIGS, known_model
from tidegate.plan.layers import Layers
from tidegate.plan.paging import Group, Paging, paging
from tidegate.plan.precision import kv_bits

BITS = Fraction(16)
GIB = 2**30


def preset(name: str, **how: int) -> Paging:
    model = known_model(name)
    assert model is not None
    return paging(model.layers, kv_bits("auto"), **how)


@pytest.mark.parametrize(
    ("name", "groups", "blocks", "concurrency"),
    [
        ("smollm2-135m", 1, 18204, 284.4375),
        ("phi-3-mini", 1, 1066, 32.3030),
        ("llama-2-7b", 1, 800, 25.0),
        ("mistral-7b", 1, 3200, 65.3061),
        ("qwen2-7b", 1, 7314, 114.28125),
        ("qwen3-8b", 1, 2844, 44.4375),
        ("gemma-3-1b", 7, 102400, 538.9474),
        ("gemma-2-9b", 2, 2438, 21.5752),
        ("gpt-oss-20b", 2, 17066, 208.1220),
        ("deepseek-v2-lite", 1, 13484, 210.6875),
        ("llama-3-70b", 1, 1280, 20.0),
        ("deepseek-v3", 1, 5968, 93.25),
    ],
)
def test_a_pool_of_50_gib_holds_what_vllm_0_32_said(name: str, groups: int, blocks: int, concurrency: float) -> None:
    """Recorded from vLLM by the live test: blocks of 128 tokens, 2048 tokens in flight, max_model_len 8192 (or all)."""
    laid = preset(name, block_tokens=128, prefill_tokens=1024)
    tokens = min(8192, CONFIGS[name]["max_position_embeddings"])
    assert len(laid.groups) == groups
    assert laid.blocks_in(50 * GIB) == blocks
    assert blocks / laid.blocks_of_sequence(tokens) == pytest.approx(concurrency, rel=1e-4)


def test_2048_and_4096_tokens_of_qwen2_7b_take_112_and_224_mib() -> None:
    laid = preset("qwen2-7b")
    assert [laid.sequence_bytes(tokens) / 2**20 for tokens in (2048, 4096)] == [112, 224]


def test_a_window_bounds_what_a_sequence_holds() -> None:
    group = Group(16, window_tokens=1024)
    assert group.blocks(100, in_flight_tokens=2048) == 8
    assert group.blocks(100_000, in_flight_tokens=2048) == group.blocks(10_000, in_flight_tokens=2048) == 193


def test_one_block_belongs_to_the_engine() -> None:
    laid = Paging(1024, (Group(16),), 0)
    assert laid.blocks_in(10 * 1024) == 10
    assert laid.sequences_in(10 * 1024, 16) == 9
    assert laid.sequences_in(-5, 16) == 0


def test_smaller_pages_hold_more_tokens_or_are_padded() -> None:
    small, large, odd = Layers(2, 1, 64, 64, 512), Layers(2, 2, 64, 64), Layers(2, 3, 64, 64)
    assert {group.block_tokens for group in paging((small, large), BITS).groups} == {16, 32}
    assert {group.block_tokens for group in paging((small, large, odd), BITS).groups} == {16, 48}
    assert paging((large, odd), BITS).block_bytes == 2 * 16 * (2 + 3) * 128 * 2


def test_groups_are_of_the_larger_kind_where_kinds_are_nearly_even() -> None:
    nearly = (Layers(12, 1, 64, 64, 128), Layers(13, 1, 64, 64))
    assert len(paging(nearly, BITS).groups) == 2
    assert len(paging((Layers(12, 1, 64, 64, 128), Layers(4, 1, 64, 64)), BITS).groups) == 4


def test_pipeline_stages_divide_the_layers_and_put_more_tokens_in_flight() -> None:
    whole, half = preset("qwen2-7b"), preset("qwen2-7b", stages=2)
    assert half.block_bytes * 2 == whole.block_bytes
    assert (whole.in_flight_tokens, half.in_flight_tokens) == (4096, 6144)


@given(
    pool_blocks=st.integers(0, 3000),
    context=st.integers(1, 20_000),
    name=st.sampled_from(["qwen2-7b", "gemma-2-9b", "mistral-7b", "gemma-3-1b"]),
)
def test_the_longest_sequence_fits_and_one_token_more_does_not(pool_blocks: int, context: int, name: str) -> None:
    laid = preset(name)
    pool_bytes = pool_blocks * laid.block_bytes
    longest = laid.longest_in(pool_bytes, context)
    assert longest == 0 or laid.sequences_in(pool_bytes, longest) >= 1
    assert longest == context or laid.sequences_in(pool_bytes, longest + 1) == 0
