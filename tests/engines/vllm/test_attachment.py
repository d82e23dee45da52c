from __future__ import annotations

from typing import Any

import pytest

from tests.engines.vllm.stand_ins import MambaManager, SlidingWindowManager, keeps, scheduler
from tidegate.engines.vllm.attachment import pool_of, unsupported
from tidegate.engines.vllm.blocks import BlockGroup
from tidegate.engines.vllm.reservation import Reservation


def test_layers_that_keep_all_or_a_window_can_be_vouched_for() -> None:
    assert unsupported(scheduler(), Reservation()) is None
    both = scheduler(keeps(), keeps(SlidingWindowManager, most_blocks=7))
    assert unsupported(both, Reservation()) is None
    assert pool_of(both).layout.groups == (BlockGroup(32), BlockGroup(32, 7))


@pytest.mark.parametrize(
    ("engine", "words"),
    [
        (scheduler(connector=object()), "connector is set"),
        (scheduler(ec_connector=object()), "connector is set"),
        (scheduler(is_encoder_decoder=True), "cross-attention"),
        (scheduler(is_diffusion=True), "diffusion"),
        (scheduler(keeps(), keeps(MambaManager)), "kept by MambaManager"),
        (scheduler(no_managers=True), "keeps no KV in blocks"),
        (scheduler(partial_hits=True), "inside a block"),
        (scheduler(parallel={"pipeline_parallel_size": 2}), "use rule worst_case"),
        (scheduler(parallel={"decode_context_parallel_size": 2}), "context parallelism"),
        (scheduler(num_spec_tokens=3, async_scheduling=True), "--no-async-scheduling"),
    ],
)
def test_an_engine_that_it_cannot_vouch_for_is_refused_in_words(engine: Any, words: str) -> None:
    reason = unsupported(engine, Reservation())
    assert reason is not None
    assert words in reason


def test_the_worst_case_needs_no_pauses_and_so_can_be_kept_in_a_pipeline() -> None:
    assert unsupported(scheduler(parallel={"pipeline_parallel_size": 2}), Reservation(rule="worst_case")) is None


def test_the_pool_is_all_blocks_but_the_null_block() -> None:
    pool = pool_of(scheduler())
    assert (pool.blocks, pool.slack_tokens, pool.longest_tokens) == (80, 0, 1024)


def test_speculation_takes_room_that_is_given_back() -> None:
    assert pool_of(scheduler(num_spec_tokens=3, num_lookahead_tokens=3)).slack_tokens == 7
