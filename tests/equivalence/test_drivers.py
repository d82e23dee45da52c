"""The gateway's driver and the simulator's, given one list of events, decide the same at the same times."""

from __future__ import annotations

import pytest

from tests.equivalence.script import Script, play_gateway, play_simulated
from tests.equivalence.scripts import (
    after_a_grace,
    campaign,
    flaky_engines,
    retry_beside_a_giant,
    silence_then_200,
    storm,
)
from tests.equivalence.story import Story, differences
from tidegate.policy.outcomes import Outcome


def agreed(script: Script) -> Story:
    """Both drivers' story, which is one; everything in it has ended."""
    story = play_simulated(script)
    assert differences(story, play_gateway(script)) == []
    assert (story.view["open_requests"], story.view["permits"], story.view["waiting"]) == (0, 0, 0)
    assert len(story.records) == story.count(call="offer")
    return story


def outcomes(story: Story) -> set[Outcome | None]:
    return {record.outcome for record in story.records}


def test_they_agree_through_a_campaigns_step() -> None:
    story = agreed(campaign(1))
    assert story.count(decision="Wait") > 500
    assert story.count(decision="Refuse") > 20


def test_they_agree_on_200_requests_after_silence() -> None:
    story = agreed(silence_then_200(1))
    assert story.count(call="verdict", decision="Admit") > 150
    assert story.count(call="verdict", decision="Refuse") > 20


def test_they_agree_on_retries_while_engines_crash_and_come_back() -> None:
    story = agreed(flaky_engines(1))
    assert story.count(call="again", decision="Admit") > 10
    assert outcomes(story) >= {Outcome.OK, Outcome.CUT, Outcome.CONNECT_FAILED}


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_they_agree_in_a_storm_of_all_kinds_of_requests_faults_and_reloads(seed: int) -> None:
    story = agreed(storm(seed))
    assert {record.service_class for record in story.records} == {"interactive", "long", "batch", "other"}
    assert {record.request.streaming for record in story.records if record.outcome is Outcome.OK} == {True, False}
    assert outcomes(story) >= {Outcome.OK, Outcome.CLIENT_LEFT, Outcome.CUT, Outcome.TOTAL_TIMEOUT}
    assert story.count(call="cancel") > 50
    assert story.count(call="verdict", decision="Answer") > 5
    assert story.count(call="apply") > 10
    assert story.count(call="instead") > 0
    assert "light_model" in {record.degraded for record in story.records}


def test_they_hand_on_what_a_request_held_that_is_tried_elsewhere() -> None:
    story = agreed(retry_beside_a_giant())
    again, giant = [step for step in story.steps if step.call in ("again", "verdict")][:2]
    assert (again.subject, again.replica, giant.subject, giant.replica) == (2, "r0", 3, "r1")
    assert giant.at == again.at


def test_they_end_the_grace_of_an_abort_when_nothing_else_happens() -> None:
    story = agreed(after_a_grace())
    assert story.view["abort_unconfirmed"] == 1
    assert story.count(call="offer", decision="Admit") == 2
