"""The comparison finds a driver's mistake: each of these drivers has one."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.equivalence import wrong_drivers as wrong
from tests.equivalence.script import Script, play_gateway, play_simulated
from tests.equivalence.scripts import after_a_grace, retry_beside_a_giant, silence_then_200, storm
from tests.equivalence.story import differences
from tidegate.gateway.driver import Driver


def short_storm() -> Script:
    return storm(1, visits=200)


def silence() -> Script:
    return silence_then_200(1)


@pytest.mark.parametrize(
    ("driver", "script"),
    [
        (wrong.KeepsWhatEnds, short_storm),
        (wrong.KeepsWhatFails, retry_beside_a_giant),
        (wrong.IgnoresReadings, short_storm),
        (wrong.IgnoresReloads, short_storm),
        (wrong.IgnoresFirstTokens, silence),
        (wrong.WakesOnce, silence),
        (wrong.WakesLate, silence),
        (wrong.ForgetsGrace, after_a_grace),
        (wrong.TellsATurnLater, silence),
        (wrong.AdvancesATurnLater, silence),
    ],
)
def test_a_driver_with_one_mistake_is_told_from_the_right_one(
    driver: type[Driver], script: Callable[[], Script]
) -> None:
    expected = play_simulated(script())
    assert differences(expected, play_gateway(script())) == []
    assert differences(expected, play_gateway(script(), driver))
