from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from tests.load.made_samples import phase, plan, played, sample
from tidegate.errors import ConfigError
from tidegate.load.breaking import Climb
from tidegate.load.client_outcome import ClientOutcome
from tidegate.load.climbing import climb_until_failure, play_steps
from tidegate.load.load_run import LoadRun
from tidegate.load.phase import Phase
from tidegate.load.plan import Plan
from tidegate.load.played import Played
from tidegate.load.progress import Progress
from tidegate.load.target import Target


class Service:
    """Answers in a second; above ``breaks_above`` users every tenth request fails."""

    def __init__(self, breaks_above: int) -> None:
        self.breaks_above = breaks_above
        self.users: list[int] = []
        self.run: LoadRun | None = None
        self.stops_after = 1_000

    async def play(self, phase: Phase, target: Target, on_progress: Callable[[Progress], None]) -> Played:
        users = phase.users or 0
        self.users.append(users)
        fails = users > self.breaks_above
        samples = [
            sample(float(k), outcome=ClientOutcome.ERROR if fails and number % 10 == 0 else ClientOutcome.OK)
            for k in range(20)
            for number in range(users)
        ]
        if len(self.users) >= self.stops_after and self.run is not None:
            self.run.is_stopped = True
        return played(samples, sending_s=phase.duration_s, phase=phase.name, target=target.name)


def run_with(service: Service, made: Plan) -> LoadRun:
    target = Target(name="t", url="http://t/v1", model="m")
    run = LoadRun(made, [target], service, lambda _: None, lambda _: None)
    service.run = run
    return run


CLOSED = plan(phase(users=3))


def test_the_climb_ends_between_the_last_load_that_held_and_the_first_that_broke() -> None:
    service, climb = Service(40), Climb(first_users=10)
    run = run_with(service, CLOSED)
    asyncio.run(climb_until_failure(run, climb, 20.0))
    told = climb.told()
    assert told["broke"]
    assert told["last_good_users"] <= 40 < told["first_bad_users"] <= 44
    assert [each.users for each in run.plan.phases] == service.users, "the manifest holds what was played"
    assert len({each.name for each in run.plan.phases}) == len(service.users)


def test_a_signal_ends_the_climb_and_it_says_so() -> None:
    service, climb = Service(10_000), Climb(first_users=10)
    service.stops_after = 3
    asyncio.run(climb_until_failure(run_with(service, CLOSED), climb, 20.0))
    assert len(service.users) == 3
    assert climb.told()["ended"] == "stopped by a signal"


def test_listed_steps_are_played_in_their_order_and_twice_where_they_stand_twice() -> None:
    service = Service(10_000)
    run = run_with(service, CLOSED)
    asyncio.run(play_steps(run, [1, 4, 1], 20.0))
    assert service.users == [1, 4, 1]
    assert [each.name for each in run.plan.phases] == ["users-1", "users-4", "users-1-again-2"]


def test_a_plan_without_users_is_refused_before_anything_is_sent() -> None:
    service = Service(1)
    run = run_with(service, plan(phase()))
    with pytest.raises(ConfigError, match="no users"):
        asyncio.run(play_steps(run, [1], 20.0))
    assert service.users == []
