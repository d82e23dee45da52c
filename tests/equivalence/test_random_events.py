"""Whatever happens, both drivers decide the same."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings

from tests.equivalence.random_scripts import scripts
from tests.equivalence.script import Script, play_gateway, play_simulated
from tests.equivalence.story import differences


@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(scripts())
def test_no_list_of_events_tells_the_drivers_apart(script: Script) -> None:
    simulated = play_simulated(script)
    assert differences(simulated, play_gateway(script)) == []
    assert (simulated.view["open_requests"], simulated.view["permits"], simulated.view["waiting"]) == (0, 0, 0)
