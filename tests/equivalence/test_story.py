from __future__ import annotations

from dataclasses import replace

import pytest

from tests.equivalence.script import play_simulated
from tests.equivalence.scripts import retry_beside_a_giant
from tests.equivalence.story import Step, Story, alike, differences
from tidegate.policy.outcomes import Outcome

STEP = Step(
    at=1.0,
    call="verdict",
    subject=1,
    ticket=2,
    decision="Admit",
    reason="slots",
    replica="r0",
    degraded="cache",
    retry_after_s=1.5,
    detail="x",
)


@pytest.fixture
def story() -> Story:
    return play_simulated(retry_beside_a_giant())


@pytest.mark.parametrize(
    "other",
    [
        replace(STEP, at=1.0 + 2e-9),
        replace(STEP, call="offer"),
        replace(STEP, subject=2),
        replace(STEP, ticket=None),
        replace(STEP, decision="Refuse"),
        replace(STEP, reason="limit"),
        replace(STEP, replica="r1"),
        replace(STEP, degraded=None),
        replace(STEP, retry_after_s=None),
        replace(STEP, detail=""),
    ],
)
def test_a_step_differs_in_every_field(other: Step) -> None:
    assert not alike(STEP, other)


def test_times_are_the_same_within_a_nanosecond() -> None:
    assert alike(STEP, replace(STEP, at=1.0 + 5e-10))
    assert alike(float("inf"), float("inf"))
    assert not alike(1.0, 1)


def test_one_story_equals_itself_told_again(story: Story) -> None:
    assert differences(story, play_simulated(retry_beside_a_giant())) == []


def test_a_step_more_or_in_another_place_is_a_difference(story: Story) -> None:
    assert differences(story, replace(story, steps=story.steps[:-1]))
    assert differences(story, replace(story, steps=[story.steps[1], story.steps[0], *story.steps[2:]]))


def test_a_field_of_one_record_is_a_difference(story: Story) -> None:
    record = story.records[0]
    for other in (
        replace(record, closed_at=record.closed_at + 2e-9),
        replace(record, outcome=Outcome.CUT),
        replace(record, request=replace(record.request, draw=0)),
    ):
        assert differences(story, replace(story, records=[other, *story.records[1:]]))


def test_a_figure_at_the_end_is_a_difference(story: Story) -> None:
    assert differences(story, replace(story, view={**story.view, "marks": 1}))
    assert differences(story, replace(story, dump={}))
