"""Quantiles within 5 %, and exact forgetting."""

from __future__ import annotations

from math import floor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.policy.sketch import ALPHA, LEAST_S, MOST_S, SLICES, Sketch, quantile

SECONDS = st.floats(LEAST_S, MOST_S)


def exact(values: list[float], q: float) -> float:
    return sorted(values)[floor(q * (len(values) - 1))]


@given(st.lists(SECONDS, min_size=1, max_size=300), st.floats(0.0, 1.0))
def test_a_quantile_is_within_alpha_of_the_exact_one(values: list[float], q: float) -> None:
    sketch = Sketch()
    for value in values:
        sketch.add(value, 0.0)
    assert quantile([sketch], q, 0.0) == pytest.approx(exact(values, q), rel=ALPHA * 1.001)


@given(st.lists(st.lists(SECONDS, max_size=50), min_size=1, max_size=5), st.floats(0.0, 1.0))
def test_several_sketches_read_as_one(parts: list[list[float]], q: float) -> None:
    together = Sketch()
    sketches = [Sketch() for _ in parts]
    for sketch, values in zip(sketches, parts, strict=True):
        for value in values:
            sketch.add(value, 0.0)
            together.add(value, 0.0)
    assert quantile(sketches, q, 0.0) == quantile([together], q, 0.0)


@given(st.lists(st.tuples(st.floats(0.0, 40.0), SECONDS), max_size=60), st.floats(0.0, 700.0))
def test_what_is_older_than_the_window_is_gone_exactly(steps: list[tuple[float, float]], later: float) -> None:
    sketch, now, held = Sketch(), 0.0, []
    for passed, seconds in steps:
        now += passed
        sketch.add(seconds, now)
        held.append((int(now / sketch.slice_s), seconds))
    now += later
    current = int(now / sketch.slice_s)
    fresh = [seconds for slice_, seconds in held if slice_ > current - SLICES]
    assert sum(sketch.counts(now)) == sketch.count == len(fresh)
    expected = None if not fresh else pytest.approx(exact(fresh, 0.9), rel=ALPHA * 1.001)
    assert quantile([sketch], 0.9, now) == expected


def test_nothing_held_has_no_quantile() -> None:
    assert quantile([], 0.5, 0.0) is None
    assert quantile([Sketch()], 0.5, 0.0) is None


def test_a_quantile_of_too_few_values_is_none() -> None:
    sketch = Sketch()
    for _ in range(29):
        sketch.add(1.0, 0.0)
    assert quantile([sketch], 0.5, 0.0, 30) is None
    sketch.add(1.0, 0.0)
    assert quantile([sketch], 0.5, 0.0, 30) == pytest.approx(1.0, rel=ALPHA)


@pytest.mark.parametrize(("seconds", "shown"), [(0.0, LEAST_S), (-1.0, LEAST_S), (1e-9, LEAST_S), (1e9, MOST_S)])
def test_values_out_of_range_are_clamped(seconds: float, shown: float) -> None:
    sketch = Sketch()
    sketch.add(seconds, 0.0)
    assert quantile([sketch], 0.5, 0.0) == pytest.approx(shown, rel=0.11)


def test_a_clock_that_starts_late_or_stands_still_is_no_matter() -> None:
    sketch = Sketch()
    sketch.add(1.0, 1e9)
    sketch.add(1.0, 1e9 - 100.0)
    assert sketch.count == 2
    sketch.add(1.0, 1e9 + 1e6)
    assert sketch.count == 1
