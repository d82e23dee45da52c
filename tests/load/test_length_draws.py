"""Lengths, drawn often, have the shape that they are said to have."""

from __future__ import annotations

from random import Random
from statistics import median

import pytest

from tidegate.load.workloads.length_draws import Fixed, Lengths, LogNormal, Observed, OneOf, Uniform


def drawn(lengths: Lengths, count: int = 4000) -> list[int]:
    rng = Random(3)
    return [lengths.draw(rng) for _ in range(count)]


def test_fixed_and_uniform() -> None:
    assert set(drawn(Fixed(7), 10)) == {7}
    assert set(drawn(Uniform(3, 6))) == {3, 4, 5, 6}


def test_a_log_normal_has_its_median_and_stays_within_its_bounds() -> None:
    found = drawn(LogNormal(200, 0.8, 50, 900))
    assert median(found) == pytest.approx(200, rel=0.05)
    assert (min(found), max(found)) == (50, 900)


def test_a_mixture_draws_each_part_by_its_weight() -> None:
    found = drawn(OneOf(((3.0, Fixed(1)), (1.0, Observed((5, 9), "a list")))))
    assert found.count(1) / len(found) == pytest.approx(0.75, abs=0.03)
    assert set(found) == {1, 5, 9}


def test_titles() -> None:
    mixture = OneOf(((1.0, Uniform(1, 2)), (1.0, Observed((3, 8), "a list"))))
    assert mixture.title == "1-2 (50%) or 3-8 of a list (50%)"
    assert "log-normal 9" in LogNormal(9, 1, 1, 99).title
    assert Fixed(4).title == "4"
