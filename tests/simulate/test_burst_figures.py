from __future__ import annotations

from tests.simulate.test_report import answered, failed, figures
from tidegate.simulate.scenario import Burst
from tidegate.simulate.visit import Ending


def test_of_the_burst_count_those_who_came_in_it_and_degraded_is_apart_from_errors() -> None:
    found = figures(
        answered(1.0, 1.0, degraded="light_model"),
        answered(10.0, 1.0),
        answered(11.0, 1.0, label="long", degraded="light_model"),
        failed(12.0, Ending.TIMEOUT, 15.0),
        answered(19.9, 1.0),
        answered(20.0, 1.0, degraded="light_model"),
        burst=Burst(10.0, 20.0),
    )
    assert found["degraded"] == 3
    assert found["rungs"] == {"light_model": 3}
    assert found["burst"] == {
        "offered": 4,
        "errors_rate": 0.25,
        "in_slo_rate": 0.5,
        "degraded": 1,
        "degraded_rate": 0.25,
        "degraded_by_kind": {"chat": 0.0, "long": 1.0},
        "degraded_by_length": {"<=512": 0.25},
    }


def test_a_burst_nobody_came_in_has_shares_of_nothing() -> None:
    found = figures(answered(1.0, 1.0), burst=Burst(10.0, 20.0))["burst"]
    assert (found["offered"], found["degraded_rate"], found["degraded_by_kind"]) == (0, 0.0, {})


def test_without_a_burst_nothing_is_said() -> None:
    assert figures(answered(1.0, 1.0))["burst"] is None
