"""Real processes and an engine without a model, over loopback. On real time, within a second or two."""

from __future__ import annotations

import asyncio
import os
import signal
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest

from tests.load.asks_of_a_test import Even, Failing
from tidegate.errors import ConfigError
from tidegate.load.client_outcome import ClientOutcome
from tidegate.load.crew import Crew, processes_for
from tidegate.load.phase import Phase
from tidegate.load.progress import Progress
from tidegate.load.target import Target
from tidegate.load.worker_process import WorkerLostError
from tidegate.testing.faulty_upstream import Upstream
from tidegate.testing.upstream_shape import Shape

Result = TypeVar("Result")
WITHIN_S = 30.0


@pytest.fixture(autouse=True)
def _progress_is_told_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidegate.load.crew.PROGRESS_EVERY_S", 0.2)


def with_crew(use: Callable[[Crew, Target], Awaitable[Result]], processes: int = 2, first_s: float = 0.002) -> Result:
    """A crew before an engine whose answers take ``first_s`` and 6 ms."""

    async def main() -> Result:
        upstream = Upstream(Shape(64, 0.002, first_s, "openai", "m"))
        target = Target(name="t", url=f"{await upstream.listen(0)}/v1", model="m")
        try:
            async with asyncio.timeout(WITHIN_S), Crew([target], 3, processes, grace_s=0.2) as crew:
                return await use(crew, target)
        finally:
            upstream.close()
            # A turn of the loop, in which the transports go.
            await asyncio.sleep(0)

    return asyncio.run(main())


def test_a_phase_is_sent_in_parts_and_comes_back_whole_and_the_next_one_uses_the_same_connections() -> None:
    async def use(crew: Crew, target: Target) -> None:
        shown: list[Progress] = []
        opened = Phase(name="o", source=Even(200), duration_s=0.5, rate_per_s=200)
        played = await crew.play(opened, target, shown.append)
        samples = played.samples
        assert [sample.index for sample in samples] == [*range(100)]
        assert Counter(sample.worker for sample in samples) == {0: 50, 1: 50}
        assert {sample.outcome for sample in samples} == {ClientOutcome.OK}
        assert {sample.tenant for sample in samples} == {"seed-3"}
        assert {(sample.phase, sample.target, sample.chunks) for sample in samples} == {("o", "t", 4)}
        assert min(played.lags_s) >= 0.0
        assert len(played.lags_s) == 100
        assert 200 < played.gaps.count <= played.token_gaps.count <= 300
        assert played.sending_s == 0.5
        assert played.began_s < samples[0].sent_at < played.began_s + 5.0
        assert 0.0 < played.cpu_s < 2.0
        assert 0.0 < played.busiest_share < 1.0
        assert (shown[-1].due, shown[-1].sent, shown[-1].in_flight) == (100, 100, 0)
        assert shown[-1].outcomes == {"ok": 100}
        closed = Phase(name="c", source=Even(1), duration_s=9.0, users=3, count=31)
        again = await crew.play(closed, target)
        assert sorted(sample.index for sample in again.samples) == [*range(31)]
        assert sum(not sample.is_reused for sample in again.samples) <= 3
        assert again.sending_s < 9.0
        assert len(crew.pids) == 2
        assert again.wake_lags_s
        assert min(again.wake_lags_s) >= 0.0

    with_crew(use)


def test_a_run_that_is_stopped_ends_in_order_and_loses_nothing() -> None:
    async def use(crew: Crew, target: Target) -> None:
        def stop(progress: Progress) -> None:
            if progress.outcomes.get("ok", 0) > 5:
                crew.stop()

        played = await crew.play(Phase(name="o", source=Even(50), duration_s=60.0), target, stop)
        outcomes = Counter(sample.outcome for sample in played.samples)
        assert {*outcomes} <= {ClientOutcome.OK, ClientOutcome.TIMEOUT, ClientOutcome.UNSENT}
        assert [sample.index for sample in played.samples] == [*range(len(played.samples))]
        assert all(sample.code == "run_ended" for sample in played.samples if sample.outcome is ClientOutcome.TIMEOUT)
        assert played.sending_s < 20.0
        assert len(played.samples) == pytest.approx(50 * played.sending_s, abs=10)

    with_crew(use, 1, first_s=0.15)


def test_a_phase_that_was_stopped_while_it_was_prepared_ends_at_once() -> None:
    async def use(crew: Crew, target: Target) -> None:
        playing = asyncio.ensure_future(crew.play(Phase(name="o", source=Even(50), duration_s=60.0), target))
        await asyncio.sleep(0)
        crew.stop()
        assert len((await playing).samples) <= 5

    with_crew(use, 1)


def test_a_worker_that_dies_is_an_error_that_says_so_and_no_smaller_result() -> None:
    async def use(crew: Crew, target: Target) -> None:
        def kill(progress: Progress) -> None:
            if crew.pids:
                os.kill(crew.pids[1], signal.SIGKILL)

        with pytest.raises(WorkerLostError, match=r"worker \d+ of the generator ended with status -9"):
            await crew.play(Phase(name="o", source=Even(50), duration_s=60.0), target, kill)
        assert crew.pids == []

    with_crew(use)


def test_what_shows_the_progress_may_fail_and_that_is_told_at_once() -> None:
    def show(progress: Progress) -> None:
        raise BrokenPipeError("nobody looks")

    async def use(crew: Crew, target: Target) -> None:
        with pytest.raises(BrokenPipeError, match="nobody looks"):
            await crew.play(Phase(name="o", source=Even(50), duration_s=60.0), target, show)
        assert crew.pids == []
        assert len((await crew.play(Phase(name="o", source=Even(50), duration_s=0.1), target)).samples) == 5

    with_crew(use, 1)


def test_asks_that_cannot_be_made_are_an_error_with_what_the_worker_wrote() -> None:
    async def use(crew: Crew, target: Target) -> None:
        with pytest.raises(WorkerLostError) as raised:
            await crew.play(Phase(name="o", source=Failing(), duration_s=1.0), target)
        assert "could not go on: LookupError: no asks for the seed 3; it wrote:" in str(raised.value)
        assert "Traceback" in str(raised.value)

    with_crew(use, 1)


@pytest.mark.parametrize(
    ("rate", "users", "asked", "number"),
    [
        (100.0, None, None, 1),
        (601.0, None, None, 3),
        (1e9, None, None, 4),
        (None, None, None, 1),
        (float("inf"), None, None, 1),
        (None, 50, None, 1),
        (None, 500, None, 3),
        (None, 2, 8, 2),
        (10.0, None, 8, 8),
    ],
)
def test_as_many_processes_as_the_load_needs(
    rate: float | None, users: int | None, asked: int | None, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidegate.load.crew.os.sched_getaffinity", lambda _: {0, 1, 2, 3})
    phase = Phase(name="p", source=Even(1), duration_s=1.0, rate_per_s=rate, users=users)
    assert processes_for(phase, asked) == number


def test_a_target_without_a_url_is_refused_before_anything_is_started() -> None:
    with pytest.raises(ConfigError, match="target t"):
        Crew([Target(name="t", url="nowhere", model="m")], 1)
