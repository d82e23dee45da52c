from __future__ import annotations

import pytest

from tests.simulate.scripted_front import demand
from tidegate.simulate.comparison import compare, loads_of
from tidegate.simulate.course import course
from tidegate.simulate.visit import Ending, Visit


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("steady", ["steady"]),
        ("azure-conv@1", ["azure-conv@1"]),
        ("azure-conv@0.8,2/slow", ["azure-conv@0.8", "azure-conv@2/slow"]),
    ],
)
def test_several_arguments_name_several_scenarios(text: str, names: list[str]) -> None:
    assert loads_of(text) == names


def test_every_policy_is_played_in_every_scenario_and_told_before() -> None:
    told: list[str] = []
    found = compare("giant-and-99@group,without", ["native", "cap:8000"], (1,), told.append)
    assert told[:2] == ["giant-and-99@group under native", "giant-and-99@group under cap:8000"]
    assert [(cell.scenario, cell.policy) for cell in found.cells] == [
        ("giant-and-99@group", "native"),
        ("giant-and-99@group", "cap:8000"),
        ("giant-and-99@without", "native"),
        ("giant-and-99@without", "cap:8000"),
    ]
    assert [cell.policy for cell in found.of_scenario("giant-and-99@without")] == ["native", "cap:8000"]
    assert len([*found.of_policy("native")]) == 2
    assert found.title == "giant-and-99@group, giant-and-99@without"
    assert found.cells[0].load is None
    assert found.objectives == {}


def test_the_load_is_the_number_after_the_at() -> None:
    found = compare("video-12@2,3", ["native"], (1,))
    assert [cell.load for cell in found.cells] == [2.0, 3.0]


def test_kinds_with_objectives_of_their_own_are_known() -> None:
    found = compare("mixed@0.2", ["bound"], (1,))
    assert found.objectives == {"interactive": 1.5, "relaxed": 20.0}


def test_a_course_has_at_most_sixty_slices_and_none_where_nobody_called() -> None:
    visits = [Visit(demand(at=at), 1, Ending.REFUSED, at + 2.0) for at in (0.0, 0.5, 599.0)]
    found = course(visits)
    assert found.slice_s == 10.0
    assert found.tails_s == [2.0, *[None] * 58, 2.0]
    assert course([]).tails_s == [None]
