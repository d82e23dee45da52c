"""The moment in which requests gather."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.policy.machine import Events, replica_config
from tidegate.policy.decisions import Admit, Wait
from tidegate.policy.outcomes import Outcome
from tidegate.policy.pacing import Pacing, PacingConfig
from tidegate.policy.path import Path
from tidegate.policy.path_config import PathConfig

ON = PacingConfig(enabled=True)
ONE = PathConfig(replicas=(replica_config("a1"),), pacing=ON)


@pytest.mark.parametrize(
    ("load", "window_ms"), [(0.0, 15.0), (0.60, 15.0), (0.725, 9.0), (0.85, 3.0), (1.0, 3.0), (3.0, 3.0)]
)
def test_the_window_shrinks_on_a_straight_line_between_the_two_loads(load: float, window_ms: float) -> None:
    assert Pacing(ON).window_s(load) == pytest.approx(window_ms / 1000)


def test_small_changes_of_load_do_not_move_the_window() -> None:
    pacing = Pacing(ON)
    window_s = pacing.window_s(0.70)
    assert pacing.window_s(0.74) == window_s
    assert pacing.window_s(0.66) == window_s
    assert pacing.window_s(0.76) < window_s
    assert pacing.view() == {"load": 0.76, "window_s": pacing.window_s(0.76)}


def test_the_first_that_waits_opens_the_window_and_it_closes_by_itself() -> None:
    pacing = Pacing(ON)
    assert not pacing.is_gathering(1.0)
    pacing.gather(0.0, 1.0)
    pacing.gather(0.0, 1.010)
    assert pacing.is_gathering(1.014)
    assert not pacing.is_gathering(1.015)
    assert not pacing.is_gathering(1.016)


def test_a_window_of_no_time_is_none() -> None:
    pacing = Pacing(replace(ON, idle_window_s=0.0))
    pacing.gather(0.0, 1.0)
    assert not pacing.is_gathering(1.0)


@pytest.mark.parametrize(
    "wrong",
    [
        {"idle_window_s": -0.1},
        {"busy_window_s": -0.1},
        {"hysteresis": -0.1},
        {"low_load": -0.1},
        {"low_load": 0.9},
    ],
)
def test_impossible_parameters_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="pacing needs"):
        PacingConfig(**wrong)  # type: ignore[arg-type]  # a table of numbers; enabled is not among them


def test_requests_gather_and_go_together_in_the_queues_order() -> None:
    events = Events(Path(ONE, 0.0))
    assert isinstance(events.offer(prompt_tokens=2000, max_tokens=10), Wait)
    events.pass_time(0.005)
    assert isinstance(events.offer(prompt_tokens=10, max_tokens=10), Wait)
    events.pass_time(0.009)
    assert events.live == []
    events.pass_time(0.002)
    assert [permit.service_class for _, permit in events.live] == ["interactive", "long"]
    assert isinstance(events.offer(prompt_tokens=10, max_tokens=10), Wait), "the next window"
    events.pass_time(0.016)
    assert len(events.live) == 3


def test_what_frees_a_place_while_others_gather_lets_nobody_go_before_the_window_ends() -> None:
    events = Events(Path(replace(ONE, replicas=(replica_config("a1", sequences=1),)), 0.0))
    events.offer(max_tokens=10)
    events.pass_time(0.02)
    assert len(events.live) == 1
    events.offer(max_tokens=10)
    events.settle(0, Outcome.OK)
    assert events.live == []
    events.pass_time(0.016)
    assert len(events.live) == 1


def test_a_window_that_everybody_left_is_no_window() -> None:
    events = Events(Path(ONE, 0.0))
    events.offer(max_tokens=10)
    events.cancel(0)
    assert events.path.next_wakeup() is None
    events.pass_time(1.0)
    assert isinstance(events.offer(max_tokens=10), Admit)
    assert isinstance(events.offer(max_tokens=10), Wait)
    events.pass_time(0.016)
    events.finish()


def test_without_pacing_a_request_goes_at_once() -> None:
    events = Events(Path(ONE, 0.0))
    events.apply(replace(ONE, pacing=PacingConfig()))
    assert isinstance(events.offer(max_tokens=10), Admit)


def test_load_is_the_fuller_of_sequences_and_slots_of_what_serves() -> None:
    replicas = (replica_config("a1", sequences=10), replica_config("a2", sequences=10))
    path = Path(PathConfig(replicas=replicas), 0.0)
    events = Events(path)
    upstream = path.upstreams["a"]
    assert upstream.load() == 0.0
    events.offer(max_tokens=10)
    (replica,) = [each for each in upstream.replicas if each.in_flight]
    assert replica.slots.total is not None
    assert replica.load() == max(0.1, replica.slots.held / replica.slots.total)
    assert upstream.load() == pytest.approx(replica.load() / 2)
    for name in ("a1", "a2"):
        events.observe(name, ready=False)
    assert upstream.load() == 0.0
