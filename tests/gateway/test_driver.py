from __future__ import annotations

import asyncio

from tidegate.gateway.driver import Driver
from tidegate.policy.change import Drain, LiftMark, SetMark
from tidegate.policy.decisions import Admit, Answer, Reason, Refuse, Wait
from tidegate.policy.marks import MarkKind
from tidegate.policy.outcomes import Outcome
from tidegate.policy.path import Path
from tidegate.policy.path_config import PathConfig
from tidegate.policy.permit import Permit
from tidegate.policy.reading import Capacity, Reading, ReplicaConfig
from tidegate.policy.request import Request
from tidegate.testing.virtual_loop import run_virtually


class Applicant:
    """Notes what it is told; ``at_once``: settles and closes inside the callback."""

    def __init__(self, driver: Driver, number: int, *, at_once: bool = False) -> None:
        self.driver = driver
        self.request = Request(number, "m", driver.now(), number, prompt_tokens=10, max_tokens=10)
        self.at_once = at_once
        self.ticket: int | None = None
        self.decision: Admit | Answer | Refuse | None = None

    def offer(self) -> Applicant:
        self.driver.offer(self.request, self)
        return self

    def on_wait(self, wait: Wait) -> None:
        self.ticket = wait.ticket

    def on_decision(self, decision: Admit | Answer | Refuse) -> None:
        assert self.decision is None
        self.decision = decision
        if self.at_once:
            self.end()

    def waits(self) -> bool:
        return self.ticket is not None and self.decision is None

    def is_admitted(self) -> bool:
        return isinstance(self.decision, Admit)

    @property
    def permit(self) -> Permit:
        assert isinstance(self.decision, Admit)
        return self.decision.permit

    def end(self, *, still_running: bool = False) -> None:
        now = self.driver.now()
        if isinstance(self.decision, Admit):
            self.driver.settle(self.permit, Outcome.OK, now, 5, 10, None, still_running)
        self.driver.close(self.request.id, now)


def driver_of(sequences: int = 1) -> Driver:
    replica = ReplicaConfig(name="r", upstream="m", capacity=Capacity(sequences=sequences))
    loop = asyncio.get_running_loop()
    return Driver(Path(PathConfig(replicas=(replica,)), loop.time()), loop)


def test_what_one_request_frees_another_has_before_close_returns() -> None:
    async def main() -> None:
        driver = driver_of()
        first, second = Applicant(driver, 1).offer(), Applicant(driver, 2).offer()
        assert first.is_admitted()
        assert second.waits()
        first.end()
        assert second.is_admitted()
        second.end()
        assert driver.view()["permits"] == 0

    run_virtually(main())


def test_decisions_that_end_at_once_do_not_nest() -> None:
    async def main() -> None:
        driver = driver_of()
        first = Applicant(driver, 1).offer()
        others = [Applicant(driver, number, at_once=True).offer() for number in range(2, 60)]
        assert all(each.ticket is not None for each in others)
        first.end()
        assert all(each.is_admitted() for each in others)
        assert driver.view()["open_requests"] == 0

    run_virtually(main())


def test_the_timer_refuses_a_ticket_when_its_time_is_up() -> None:
    async def main() -> None:
        driver = driver_of()
        first, second = Applicant(driver, 1).offer(), Applicant(driver, 2).offer()
        await asyncio.sleep(9.9)
        assert second.waits()
        await asyncio.sleep(0.2)
        assert isinstance(second.decision, Refuse)
        assert second.decision.reason is Reason.QUEUE_TIMEOUT
        second.end()
        first.end()

    run_virtually(main())


def test_a_cancelled_ticket_is_never_decided() -> None:
    async def main() -> None:
        driver = driver_of()
        first, second = Applicant(driver, 1).offer(), Applicant(driver, 2).offer()
        assert second.ticket is not None
        driver.cancel(second.ticket)
        driver.close(second.request.id, driver.now())
        first.end()
        await asyncio.sleep(60)
        assert second.decision is None
        assert driver.waiting == 0

    run_virtually(main())


def test_an_abort_that_nobody_confirms_gives_its_place_back_by_the_clock() -> None:
    async def main() -> None:
        driver = driver_of()
        first = Applicant(driver, 1).offer()
        first.end(still_running=True)
        second = Applicant(driver, 2).offer()
        assert second.waits()
        await asyncio.sleep(3)
        assert second.is_admitted()
        second.end()

    run_virtually(main())


def test_a_reading_a_little_ahead_of_the_loops_clock_still_counts() -> None:
    async def main() -> None:
        driver = driver_of()
        first = Applicant(driver, 1).offer()
        first.end(still_running=True)
        driver.observe("r", Reading(at=driver.now() + 0.05, ready=False))
        assert driver.view()["permits"] == 0

    run_virtually(main())


def test_an_operators_order_and_a_reload_reach_path_and_wake_who_waits() -> None:
    async def main() -> None:
        driver = driver_of()
        assert driver.apply(Drain("r")).lines
        waiting = Applicant(driver, 1).offer()
        assert waiting.waits()
        driver.apply(Drain("r", on=False))
        assert waiting.is_admitted()
        waiting.end()
        driver.stop()

    run_virtually(main())


def test_a_patrol_tells_what_there_is_to_log_and_gives_what_came_free_away() -> None:
    async def main() -> None:
        driver = driver_of()
        driver.apply(SetMark(MarkKind.REPLICA, "r", 5.0, "maintenance", "ticket 7"))
        assert [each["key"] for each in driver.marks()] == ["r"]
        assert [each.kind for each in driver.patrol()] == ["mark_set"]
        assert driver.patrol() == []
        await asyncio.sleep(5.0)
        assert [each.kind for each in driver.patrol()] == ["mark_ended"]
        assert driver.apply(LiftMark(MarkKind.REPLICA, "r")).lines == ()

    run_virtually(main())


def test_the_health_of_models_is_told() -> None:
    async def main() -> None:
        driver = driver_of()
        Applicant(driver, 1, at_once=True).offer()
        report = driver.health("m")
        assert report is not None
        assert (report["requests"], driver.health("z")) == (1, None)
        assert [each["model"] for each in driver.healths()] == ["m"]

    run_virtually(main())
