"""Closed loops are played as closed loops, for their times follow from the engine's."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from tests.simulate.known_engine import TRUTH
from tidegate.simulate.calibrated_engine import CalibratedEngine
from tidegate.simulate.calibration import most_at_once
from tidegate.simulate.load_replay import Replayed, replay
from tidegate.simulate.load_row import LoadRow
from tidegate.simulate.stretch import stretches

PAUSE_S = 0.002


def row(at: float, last_at: float, phase: str = "step") -> LoadRow:
    rng = Random(f"{at}")
    return LoadRow(
        at=at,
        first_at=at,
        last_at=last_at,
        prompt_tokens=rng.randint(8, 300),
        output_tokens=rng.randint(2, 40),
        phase=phase,
    )


def closed(users: int, count: int, began: float = 0.0, phase: str = "step") -> list[LoadRow]:
    """So many users of an engine that takes 1 to 2 s, whatever else it does."""
    rng = Random(users)
    free = [began + 0.001 * user for user in range(users)]
    rows = []
    for _ in range(count):
        at = min(free)
        ends = at + rng.uniform(1.0, 2.0)
        rows.append(row(at, ends, phase))
        free[free.index(at)] = ends + PAUSE_S
    return rows


def with_times(rows: list[LoadRow], played: list[Replayed]) -> list[LoadRow]:
    return [
        replace(each, at=again.at, first_at=again.first_at, last_at=again.last_at)
        for each, again in zip(rows, played, strict=True)
    ]


@pytest.mark.parametrize("users", [1, 2, 5])
def test_a_closed_loop_is_known_by_as_many_under_way_as_there_are_users(users: int) -> None:
    (found,) = stretches(closed(users, 30))
    assert found.users == users
    assert found.pause_s == pytest.approx(PAUSE_S)


def test_requests_at_times_of_their_own_are_no_closed_loop() -> None:
    rng, at = Random(3), 0.0
    rows = []
    for _ in range(60):
        at += rng.expovariate(2.0)
        rows.append(row(at, at + rng.uniform(0.5, 1.5)))
    (found,) = stretches(rows)
    assert found.users == 0


def test_who_left_makes_a_loop_uncertain() -> None:
    rows = closed(2, 30)
    rows[4] = replace(rows[4], is_whole=False)
    (found,) = stretches(rows)
    assert found.users == 0


def test_phases_are_stretches_of_their_own_unless_they_overlap() -> None:
    apart = closed(2, 20) + closed(3, 20, began=100.0, phase="next")
    assert [each.users for each in stretches(apart)] == [2, 3]
    overlapping = [row(0.0, 5.0, "one"), row(4.0, 6.0, "two"), row(7.0, 8.0, "two")]
    assert [each.indices for each in stretches(overlapping)] == [(0, 1, 2)]


def test_users_of_a_slower_engine_wait_for_it_and_do_not_pile_up() -> None:
    rows = closed(3, 40)
    slow = CalibratedEngine(config=replace(TRUTH.config, step=TRUTH.config.step.slowed(30.0)), overhead_s=0.1)
    played = with_times(rows, replay(rows, slow))
    assert max(each.last_at for each in played) > 2 * max(each.last_at for each in rows)
    assert most_at_once(played) == 3
    assert [each.at for each in played] == sorted(each.at for each in played)
    (again,) = stretches(played)
    assert again.users == 3
    assert again.pause_s == pytest.approx(PAUSE_S)
