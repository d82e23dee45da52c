from __future__ import annotations

import pytest

from tidegate.engines.vllm.blocks import BlockGroup, BlockLayout


def test_a_begun_block_is_a_whole_one() -> None:
    assert [BlockGroup(16).needed(tokens) for tokens in (0, 1, 16, 17)] == [0, 1, 1, 2]


def test_a_sliding_window_gives_back_what_it_has_passed() -> None:
    assert [BlockGroup(16, 3).needed(tokens) for tokens in (16, 48, 49, 1000)] == [1, 3, 3, 3]


def test_groups_take_their_blocks_from_one_pool() -> None:
    assert BlockLayout((BlockGroup(16), BlockGroup(16, 2))).needed(100) == 7 + 2


def test_only_one_group_that_keeps_all_is_plain() -> None:
    assert BlockLayout((BlockGroup(16),)).block_tokens == 16
    assert BlockLayout((BlockGroup(16, 2),)).block_tokens is None
    assert BlockLayout((BlockGroup(16), BlockGroup(16))).block_tokens is None


@pytest.mark.parametrize("block", [(0, None), (16, 0)])
def test_an_impossible_group_is_refused(block: tuple[int, int | None]) -> None:
    with pytest.raises(ValueError, match="at least one"):
        BlockGroup(*block)


def test_an_engine_without_groups_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one group"):
        BlockLayout(())
