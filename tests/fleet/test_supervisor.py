"""Real processes, pauses of milliseconds: what is waited for are events, never time."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.fleet import children
from tidegate.errors import EngineError
from tidegate.fleet.restarts import RestartConfig
from tidegate.fleet.supervisor import Check, EngineState, Supervisor, SupervisorConfig

QUICK = SupervisorConfig(
    restart=RestartConfig(first_s=0.001, longest_s=0.002, tries=3),
    check_every_s=0.01,
    missed_checks=2,
    stop_grace_s=5.0,
)


class Log:
    """A watcher that remembers, and tells when so many things have happened."""

    def __init__(self) -> None:
        self.ready: asyncio.Queue[str] = asyncio.Queue()
        self.down: asyncio.Queue[tuple[str, float | None]] = asyncio.Queue()
        self.lines: list[str] = []

    def on_ready(self, url: str) -> None:
        self.ready.put_nowait(url)

    def on_down(self, reason: str, again_in_s: float | None) -> None:
        self.down.put_nowait((reason, again_in_s))

    def on_line(self, text: str) -> None:
        self.lines.append(text)


class Running:
    """A supervisor and the task that runs it."""

    def __init__(self, source: str, config: SupervisorConfig = QUICK, check: Check | None = None) -> None:
        self.log = Log()
        self.supervisor = Supervisor(children.launch(source), self.log, check, config)
        self.task = asyncio.get_running_loop().create_task(self.supervisor.run())

    async def __aenter__(self) -> Running:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.supervisor.stop()
        await self.task
        assert self.supervisor.pid is None


def state_of(running: Running) -> str:
    return running.supervisor.state.value


def test_an_engine_becomes_ready_and_stops_when_told() -> None:
    async def live() -> None:
        async with Running(children.GREETS) as it:
            assert state_of(it) == "starting"
            assert await it.supervisor.ready() == "http://127.0.0.1:9"
            assert await it.log.ready.get() == "http://127.0.0.1:9"
            assert state_of(it) == "ready"
            assert it.supervisor.resident_bytes
            assert it.supervisor.pid
        assert state_of(it) == "stopped"
        assert it.supervisor.url is None
        assert it.log.down.empty()
        assert sorted(it.log.lines) == ["engine: odd", "engine: told {}"]
        with pytest.raises(EngineError, match="engine was stopped"):
            await it.supervisor.ready()

    asyncio.run(live())


def test_an_engine_that_is_killed_is_started_again() -> None:
    async def live() -> None:
        async with Running(children.SERVES) as it:
            await it.log.ready.get()
            for restart in (1, 2):
                first = it.supervisor.pid
                assert first is not None
                assert it.supervisor._process is not None
                it.supervisor._process._process.kill()
                assert await it.log.down.get() == ("killed by SIGKILL", 0.001 * restart)
                await it.log.ready.get()
                assert it.supervisor.pid != first
                assert it.supervisor.restarts == restart

    asyncio.run(live())


def test_one_that_crashes_as_soon_as_it_is_ready_is_tried_again_and_again() -> None:
    async def live() -> None:
        async with Running(children.CRASHES) as it:
            for _ in range(5):
                reason, pause_s = await it.log.down.get()
                assert reason == "killed by SIGKILL"
                assert pause_s is not None

    asyncio.run(live())


def test_one_that_never_gets_ready_is_given_up_with_its_reason() -> None:
    async def live() -> None:
        async with Running(children.FAILS) as it:
            with pytest.raises(EngineError, match="no luck"):
                await it.supervisor.ready()
            await it.task
            told = [it.log.down.get_nowait() for _ in range(it.log.down.qsize())]
            assert told == [("no luck", 0.001), ("no luck", 0.002), ("no luck", None)]

    asyncio.run(live())


def test_one_that_cannot_run_is_not_tried_again() -> None:
    async def live() -> None:
        async with Running(children.CANNOT) as it:
            assert await it.log.down.get() == ("install it", None)
            assert it.supervisor.restarts == 0

    asyncio.run(live())


def test_one_that_takes_too_long_to_get_ready_is_killed() -> None:
    async def live() -> None:
        hasty = SupervisorConfig(restart=RestartConfig(tries=1), ready_within_s=0.05)
        async with Running(children.NEVER_READY, hasty) as it:
            assert await it.log.down.get() == ("not ready within 0 s of its start", None)

    asyncio.run(live())


def test_one_that_hangs_is_killed_and_started_again() -> None:
    async def live() -> None:
        answers = iter([False, True])

        async def check() -> bool:
            if (answer := next(answers, None)) is None:
                raise ConnectionRefusedError("nobody there")
            return answer

        async with Running(children.SERVES, check=check) as it:
            assert (await it.log.down.get())[0] == "hangs: no sign of life in 2 checks"
            await it.log.ready.get()

    asyncio.run(live())


def test_one_that_shows_signs_of_life_goes_on() -> None:
    async def live() -> None:
        checks = asyncio.Semaphore(0)

        async def check() -> bool:
            checks.release()
            return True

        async with Running(children.SERVES, check=check) as it:
            for _ in range(4):
                await checks.acquire()
            assert it.supervisor.state is EngineState.READY
            assert it.log.down.empty()

    asyncio.run(live())


def test_stopping_during_a_start_leaves_nothing(tmp_path: Path) -> None:
    async def live() -> None:
        async with Running(children.NEVER_READY) as it:
            await asyncio.sleep(0)
        assert it.supervisor.state is EngineState.STOPPED

    asyncio.run(live())


def test_stopping_during_a_pause_ends_it() -> None:
    async def live() -> None:
        patient = SupervisorConfig(restart=RestartConfig(first_s=600.0, longest_s=600.0))
        async with Running(children.FAILS, patient) as it:
            assert await it.log.down.get() == ("no luck", 600.0)
        assert it.supervisor.state is EngineState.STOPPED

    asyncio.run(live())


def test_stopping_before_it_ran_returns_at_once() -> None:
    async def live() -> None:
        await Supervisor(children.launch(children.SERVES), Log()).stop()

    asyncio.run(live())


def test_a_cancelled_run_still_ends_the_engine() -> None:
    async def live() -> None:
        running = Running(children.SERVES)
        await running.log.ready.get()
        running.task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running.task
        assert running.supervisor.pid is None
        assert running.supervisor.state is EngineState.STOPPED

    asyncio.run(live())
