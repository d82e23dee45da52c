from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tidegate.engines.vllm.blocks import BlockGroup, BlockLayout
from tidegate.engines.vllm.forecast import Forecast

ends = st.tuples(st.integers(1, 60), st.integers(1, 120))
layouts = st.sampled_from(
    [
        BlockLayout((BlockGroup(1),)),
        BlockLayout((BlockGroup(8),)),
        BlockLayout((BlockGroup(32),)),
        BlockLayout((BlockGroup(8), BlockGroup(16, 3))),
    ]
)


def peak_step_by_step(layout: BlockLayout, sequences: list[tuple[int, int]]) -> int:
    last = max((left for left, _ in sequences), default=0)
    held = (
        sum(layout.needed(tokens + step - 1) for left, tokens in sequences if left >= step)
        for step in range(1, last + 1)
    )
    return max(held, default=0)


@given(layout=layouts, sequences=st.lists(ends, max_size=20))
def test_the_peak_is_that_of_living_through_every_step(layout: BlockLayout, sequences: list[tuple[int, int]]) -> None:
    assert Forecast(layout, sequences).peak == peak_step_by_step(layout, sequences)


@given(layout=layouts, sequences=st.lists(ends, max_size=20), newcomer=ends)
def test_a_newcomer_is_forecast_as_if_it_were_there(
    layout: BlockLayout, sequences: list[tuple[int, int]], newcomer: tuple[int, int]
) -> None:
    assert Forecast(layout, sequences).peak_with(*newcomer) == peak_step_by_step(layout, [*sequences, newcomer])


def test_nobody_holds_nothing() -> None:
    assert Forecast(BlockLayout((BlockGroup(8),)), []).peak == 0
