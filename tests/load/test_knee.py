from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from math import log

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.load.made_samples import figures_of, phase, steadily
from tidegate.load.bent_line import bent_line, shared_bend, solved
from tidegate.load.knee import LoadPoint, find_knee, knee_of, knee_text, knees, step_rule
from tidegate.load.phase import Kind
from tidegate.load.phase_figures import PhaseFigures


def batching(slots: float, slowdown: float = 0.0) -> Callable[[float], tuple[float, float]]:
    """A closed loop on an engine with so many slots: answers per second and latency at ``users``.

    Each doubling of the batch takes ``slowdown`` longer: a step of a larger batch does.
    """

    def at(users: float) -> tuple[float, float]:
        busy = min(users, slots)
        service_s = busy**slowdown
        return busy / service_s, service_s * max(1.0, users / slots)

    return at


def open_loop(capacity: float, hold_s: float = 60.0) -> Callable[[float], tuple[float, float]]:
    """Requests per second on one that carries ``capacity``; above it a queue grows for ``hold_s``."""

    def at(rate: float) -> tuple[float, float]:
        waiting_s = 0.2 / (1 - min(rate / capacity, 0.97)) if rate < capacity else 0.2 / 0.03
        return min(rate, capacity), 0.8 + waiting_s + hold_s * max(0.0, rate / capacity - 1)

    return at


def points(
    service: Callable[[float], tuple[float, float]], loads: Sequence[float], noise: float = 0.0, seed: int = 1
) -> list[LoadPoint]:
    lot = random.Random(seed)
    found = []
    for load in loads:
        answered, latency = service(load)
        slow = latency * lot.lognormvariate(0, noise)
        found.append(LoadPoint(load, answered * lot.lognormvariate(0, noise / 2), slow, slow * 1.3))
    return found


SCATTERED = [LoadPoint(2.0**k, 2.0 ** (k - (k + 1) % 2 * 4), 2.0 ** ((k + 1) % 2 * 4), 9.0) for k in range(9)]
"""Every other step is sixteen times as good as its neighbours."""


def ramp(least: float, most: float, factor: float = 1.5) -> list[float]:
    loads = [least]
    while loads[-1] < most:
        loads.append(loads[-1] * factor)
    return loads


@settings(max_examples=20)
@given(st.integers(5, 400), st.floats(0, 0.4), st.floats(2, 10), st.floats(2.5, 8), st.integers(0, 10_000))
def test_the_knee_of_an_engine_with_slots_is_where_its_slots_are_full(
    slots: int, slowdown: float, below: float, above: float, seed: int
) -> None:
    made = points(batching(slots, slowdown), ramp(slots / below, slots * above), noise=0.03, seed=seed)
    found = find_knee(made)
    assert found.is_found, found.why
    assert found.load is not None
    assert found.limit is not None
    assert slots / 1.3 <= found.load <= slots * 1.3
    assert found.limit <= 0.8 * found.load or found.limit == 1


@settings(max_examples=10)
@given(st.integers(8, 200), st.integers(0, 10_000))
def test_a_bad_step_does_not_move_the_knee_far(slots: int, seed: int) -> None:
    made = points(batching(slots), ramp(slots / 8, slots * 4), noise=0.02, seed=seed)
    made[2] = replace(made[2], p95_s=made[2].p95_s * 1.4)
    found = find_knee(made)
    assert found.load is not None
    assert slots / 1.4 <= found.load <= slots * 1.4


@settings(max_examples=10)
@given(st.floats(0.5, 200), st.integers(0, 10_000))
def test_the_knee_of_an_open_loop_lies_just_below_its_capacity(capacity: float, seed: int) -> None:
    made = points(open_loop(capacity), ramp(capacity / 5, capacity * 2, 1.3), noise=0.02, seed=seed)
    found = find_knee(made, "requests/s")
    assert found.load is not None
    assert 0.65 * capacity <= found.load <= 1.15 * capacity
    assert found.limit == pytest.approx(0.8 * found.load)
    assert found.rate_per_s == pytest.approx(min(found.load, capacity), rel=0.15)


def test_the_knee_does_not_move_when_somebody_loads_higher() -> None:
    near, far = (find_knee(points(batching(64), ramp(8, most))) for most in (200, 2000))
    assert near.load is not None
    assert far.load is not None
    assert near.load == pytest.approx(far.load, rel=0.1)


@pytest.mark.parametrize(
    ("made", "why"),
    [
        (points(batching(1000), ramp(10, 400)), "no knee found, load higher"),
        (points(batching(1000, 0.4), ramp(10, 400), 0.05), "no knee found, load higher"),
        (points(batching(100), ramp(10, 100)), "no knee found, load higher"),
        (points(batching(5), ramp(10, 400)), "every step is beyond the knee, begin lower"),
        (points(batching(50), [10, 50, 100, 200]), "4 steps with answers are too few"),
        (points(batching(50), [50, 50, 50, 50, 50, 50]), "1 steps with answers are too few"),
        ([], "0 steps"),
        (
            points(lambda load: (9.0, 1.0) if load < 60 else (3.0, 40.0), ramp(10, 100, 1.2)),
            "every step is beyond the knee",
        ),
        (SCATTERED, "no knee found: the steps scatter too much"),
    ],
)
def test_steps_that_show_no_knee_say_so_and_what_to_run(made: list[LoadPoint], why: str) -> None:
    found = find_knee(made)
    assert not found.is_found
    assert found.why.startswith(why)
    assert (found.load, found.limit) == (None, None)
    assert knee_text(found) == found.why


@settings(max_examples=10)
@given(st.floats(0, 0.6), st.floats(0.01, 0.05), st.integers(0, 10_000))
def test_no_knee_is_seen_in_a_service_that_was_never_full(slowdown: float, noise: float, seed: int) -> None:
    """Up to a 0.05 scatter; an elasticity of latency to load of 0.5 and more counts as full."""
    found = find_knee(points(batching(1e6, min(slowdown, 0.4)), ramp(4, 500), noise, seed))
    assert not found.is_found, found


def test_the_usual_five_steps_are_enough() -> None:
    found = find_knee(points(batching(120), [10, 50, 100, 200, 500], 0.02))
    assert found.load == pytest.approx(120, rel=0.3)
    assert "twice the load brings" in found.why
    assert knee_text(found).startswith("knee at 1")


def test_the_step_rule_names_the_last_step_before_latency_takes_what_throughput_does_not_gain() -> None:
    made = points(batching(120), [10, 50, 100, 200, 500])
    assert step_rule(made) == 200, "from 100 to 200 the answers still grow by a tenth for each half"
    assert step_rule(points(batching(100), [10, 50, 100, 200, 500])) == 100
    assert step_rule(points(batching(1000), [10, 50, 100])) is None
    assert step_rule([LoadPoint(10, 1, 1, 1), LoadPoint(10, 1, 9, 9)]) is None


def step(users: int, slots: int, target: str = "t") -> PhaseFigures:
    latency_s = max(1.0, users / slots)
    count = int(100 / latency_s * users)
    of = phase(f"step-{users}", kind=Kind.STEP, users=users)
    return replace(figures_of(steadily(count, lambda k: latency_s), of), target=target)


def test_each_target_of_a_run_has_its_own_knee() -> None:
    figures = [step(users, slots, name) for users in (2, 4, 8, 16, 32) for name, slots in (("a", 8), ("b", 4))]
    found = knees([*figures, figures_of(steadily(9, lambda k: 1.0))])
    assert list(found) == ["a", "b"]
    assert found["a"].load == pytest.approx(8, rel=0.2)
    assert found["b"].load == pytest.approx(4, rel=0.2)
    assert found["a"].told()["unit"] == "users"
    assert found["a"].limit == float(int(0.8 * (found["a"].load or 0)))


def test_steps_without_users_are_told_by_their_rate() -> None:
    made = [figures_of(steadily(count, lambda k: 1.0), phase(str(count), kind=Kind.STEP)) for count in (9, 99)]
    assert knee_of(made).unit == "requests/s"


def test_a_bend_is_found_where_it_is() -> None:
    x = [float(k) for k in range(10)]
    bend = shared_bend(x, ([max(0.0, value - 4.5) * 2 for value in x], [1 + max(0.0, value - 4.5) for value in x]))
    assert bend.at == pytest.approx(4.5, abs=0.05)
    assert [round(line.after, 1) for line in bend.lines] == [2.0, 1.0]
    assert bend.gain > 0.99
    assert shared_bend(x, (x,)).gain == 0.0


@given(st.floats(-3, 3), st.floats(-2, 2), st.floats(-2, 2), st.integers(2, 7))
def test_a_bent_line_through_points_on_one_has_no_rest(start: float, before: float, more: float, bend: int) -> None:
    x = [log(1 + k) * 4 for k in range(10)]
    at = x[bend]
    found = bent_line(x, [start + before * value + more * max(0.0, value - at) for value in x], at)
    assert found.rest == pytest.approx(0, abs=1e-9)
    assert found.after == pytest.approx(before + more, abs=1e-6)


def test_a_direction_without_data_gets_nothing() -> None:
    assert solved([[2.0, 0.0], [0.0, 0.0]], [4.0, 0.0]) == [2.0, 0.0]
