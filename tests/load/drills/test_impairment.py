"""When pieces go on, worked out without a clock."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.load.drills.impairment import Impairment, Releases


def test_a_delay_is_the_same_for_every_piece() -> None:
    releases, slow = Releases(), Impairment(delay_s=0.5)
    assert [releases.at(slow, now, 100, 0.9) for now in (1.0, 1.1, 5.0)] == [1.5, 1.6, 5.5]


def test_jitter_spreads_evenly_around_the_delay() -> None:
    shaky = Impairment(delay_s=0.5, jitter_s=0.2)
    assert [Releases().at(shaky, 1.0, 100, draw) for draw in (0.0, 0.5, 1.0)] == pytest.approx([1.3, 1.5, 1.7])


def test_more_jitter_than_delay_does_not_let_a_piece_go_before_it_came() -> None:
    assert Releases().at(Impairment(delay_s=0.1, jitter_s=1.0), 7.0, 100, 0.0) == 7.0


def test_a_narrow_line_holds_up_what_comes_behind() -> None:
    releases, narrow = Releases(), Impairment(bytes_per_s=1000.0)
    assert [releases.at(narrow, 1.0, 500, 0.5) for _ in range(3)] == [1.5, 2.0, 2.5]


@given(st.lists(st.tuples(st.floats(0, 10), st.floats(0, 1, exclude_max=True)), min_size=2))
def test_no_piece_overtakes_another(steps: list[tuple[float, float]]) -> None:
    releases, shaky, now, last = Releases(), Impairment(delay_s=0.5, jitter_s=0.5), 0.0, 0.0
    for after_s, draw in steps:
        now += after_s
        at = releases.at(shaky, now, 10, draw)
        assert at >= last
        assert at >= now
        last = at
