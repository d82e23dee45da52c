from __future__ import annotations

from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st

from tidegate.engines.vllm.safety import is_safe

sequences = st.tuples(st.integers(0, 6), st.integers(0, 6)).map(lambda pair: (pair[0], pair[0] + pair[1]))


def can_all_end(order: tuple[tuple[int, int], ...], free: int) -> bool:
    for held, most in order:
        if most - held > free:
            return False
        free += held
    return True


@given(some=st.lists(sequences, max_size=5), free=st.integers(0, 10))
def test_it_is_safe_exactly_when_some_order_lets_all_end(some: list[tuple[int, int]], free: int) -> None:
    assert is_safe(some, free) == any(can_all_end(order, free) for order in permutations(some))


def test_two_that_want_each_others_blocks_are_not_safe() -> None:
    assert not is_safe([(3, 6), (3, 6)], 2)
    assert is_safe([(3, 6), (3, 6)], 3)
