from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.fleet.restarts import RestartConfig, Restarts

CONFIG = RestartConfig(first_s=0.5, longest_s=30.0, healthy_s=60.0, tries=3)


def test_pauses_double_up_to_the_ceiling() -> None:
    restarts = Restarts(CONFIG)
    assert [restarts.pause_s(1.0) for _ in range(8)] == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]


def test_a_healthy_minute_forgets_earlier_failures() -> None:
    restarts = Restarts(CONFIG)
    for _ in range(5):
        restarts.pause_s(1.0)
    assert restarts.pause_s(60.0) == 0.5
    assert restarts.pause_s(59.9) == 1.0


def test_an_engine_that_was_never_ready_is_given_up() -> None:
    restarts = Restarts(CONFIG)
    assert [restarts.pause_s(None) for _ in range(3)] == [0.5, 1.0, None]


def test_an_engine_that_was_ready_once_is_never_given_up() -> None:
    restarts = Restarts(CONFIG)
    restarts.pause_s(0.1)
    assert all(restarts.pause_s(None) is not None for _ in range(5_000))


@given(st.lists(st.one_of(st.none(), st.floats(0, 1e6)), max_size=60))
def test_every_pause_lies_between_first_and_ceiling(lives: list[float | None]) -> None:
    restarts = Restarts(CONFIG)
    pauses = [restarts.pause_s(ready_for_s) for ready_for_s in lives]
    assert all(pause is None or CONFIG.first_s <= pause <= CONFIG.longest_s for pause in pauses)


@pytest.mark.parametrize("wrong", [{"first_s": 0.0}, {"first_s": 31.0}, {"healthy_s": 0.0}, {"tries": 0}])
def test_a_configuration_that_makes_no_sense_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="must be positive"):
        RestartConfig(**wrong)  # type: ignore[arg-type]  # one of the fields is an int, the values fit
