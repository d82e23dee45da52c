from __future__ import annotations

from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st

from tidegate.engines.vllm.safety import Holdings

sequences = st.tuples(st.integers(0, 6), st.integers(0, 6)).map(lambda pair: (pair[0], pair[0] + pair[1]))


def can_all_end(order: tuple[tuple[int, int], ...], free: int) -> bool:
    for held, most in order:
        if most - held > free:
            return False
        free += held
    return True


@given(some=st.lists(sequences, max_size=5), free=st.integers(0, 10))
def test_it_is_safe_exactly_when_some_order_lets_all_end(some: list[tuple[int, int]], free: int) -> None:
    held = sum(each for each, _ in some)
    assert Holdings(some).are_safe(held + free) == any(can_all_end(order, free) for order in permutations(some))


def test_two_that_want_each_others_blocks_are_not_safe() -> None:
    assert not Holdings([(3, 6), (3, 6)]).are_safe(8)
    assert Holdings([(3, 6), (3, 6)]).are_safe(9)


@given(some=st.lists(sequences, max_size=6), newcomer=sequences, pool=st.integers(0, 40))
def test_a_newcomer_is_judged_as_if_it_were_there(
    some: list[tuple[int, int]], newcomer: tuple[int, int], pool: int
) -> None:
    assert Holdings(some).are_safe_with(newcomer, pool) == Holdings([*some, newcomer]).are_safe(pool)


def test_more_held_than_there_is_is_not_safe() -> None:
    assert not Holdings([(3, 3)]).are_safe(2)
