"""Drills as they are played: measured, ended early, and always put back."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from tests.load.drills.chat_server import ChatServer
from tests.load.drills.made_findings import drill
from tidegate.engines.address import Address
from tidegate.errors import EngineError
from tidegate.load.drills import burst_spike, engine_freeze, node_lost, out_of_memory, several_restarts
from tidegate.load.drills.affordable_rate import affordable
from tidegate.load.drills.drill import Drill
from tidegate.load.drills.drill_pace import Pace
from tidegate.load.drills.drill_runner import DrillRunner
from tidegate.load.drills.findings import Findings
from tidegate.load.drills.scene import Scene
from tidegate.load.drills.setup import Setup
from tidegate.load.target import Target

PACE = Pace(baseline_s=0.12, fault_s=0.15, after_s=0.15, rate_per_s=60.0, peak_per_s=60.0, patience_s=2.0)


class Broken:
    """A deployment of one chat server. ``fails``: what can't be put back."""

    name = "made"
    is_own = False
    most_broken = 2
    most_error_share = 1.0

    def __init__(self, server: ChatServer, fails: str = "") -> None:
        self.server = server
        self.fails = fails
        self.broken: list[tuple[str, str | None]] = []
        self.restored: list[tuple[str, str | None]] = []
        self.is_startable = True

    @property
    def target(self) -> Target:
        return Target(name="made", url=f"{self.server.url}/v1", model="m")

    @property
    def replicas(self) -> Sequence[str]:
        return ["a", "b", "c"]

    def breakable(self, fault: str) -> Sequence[str]:
        return ["a"] if fault == "of a" else self.replicas

    def why_not(self, fault: str) -> str:
        return "the file has none" if fault == "unknown" else ""

    async def prepare(self, _setup: Setup) -> None:
        if not self.is_startable:
            raise EngineError("it does not start")

    async def break_(self, fault: str, replica: str | None) -> None:
        self.broken.append((fault, replica))
        if fault == "impossible":
            raise EngineError("it will not break")
        self.server.is_broken = fault == "all"

    async def restore(self, fault: str, replica: str | None) -> None:
        self.server.is_broken = False
        self.restored.append((fault, replica))
        if fault == self.fails:
            raise EngineError("it does not come back")

    async def view(self) -> Mapping[str, Any] | None:
        return {"replicas": {"a": {"in_flight": 1, "limit": 4.0}}}

    async def rows(self) -> Sequence[Mapping[str, Any]]:
        return [{"request_id": "made-1", "outcome": "ok", "status": 429, "retry_after_s": 1.0}]

    def take_remarks(self) -> list[str]:
        return ["as it was"]

    def duplicated(self) -> int | None:
        return None

    def engine(self, _replica: str) -> Address | None:
        return None

    def pid(self, _replica: str) -> int | None:
        return None

    def resident_bytes(self, _replica: str) -> int | None:
        return None

    async def close(self) -> None:
        """Nothing was started."""


def play(
    made: Drill, fails: str = "", pace: Pace = PACE, is_startable: bool = True
) -> tuple[Findings, Broken, list[str]]:
    said: list[str] = []

    async def whole() -> tuple[Findings, Broken]:
        async with ChatServer() as server:
            deployment = Broken(server, fails)
            deployment.is_startable = is_startable
            return await DrillRunner(deployment, pace, 1, said.append).run(made), deployment

    findings, deployment = asyncio.run(whole())
    return findings, deployment, said


def breaking(fault: str, then: Callable[[Scene], Awaitable[None]] | None = None) -> Drill:
    async def steps(scene: Scene) -> None:
        await scene.baseline()
        await scene.break_(fault, "a")
        await scene.fault_time()
        if then is not None:
            await then(scene)
        await scene.restore()
        await scene.aftermath()

    return drill(play=steps, faults=(fault,), expected_error_share=1.0)


def test_a_fault_is_measured_and_put_back() -> None:
    findings, deployment, _ = play(breaking("all"))
    assert findings.baseline_requests >= 5
    assert findings.baseline_error_share == 0.0
    assert findings.outcomes["error"] >= 3
    assert findings.outcomes["ok"] >= 3
    assert findings.codes == {"engine_error": findings.outcomes["error"]}
    assert findings.recovered_s is None
    assert deployment.restored == [("all", "a")]
    assert not deployment.server.is_broken
    assert findings.notes == ["as it was"]
    assert findings.duplicated == 0


def test_a_drill_that_raises_is_ended_and_put_back() -> None:
    async def trip(_scene: Scene) -> None:
        raise EngineError("a step failed")

    findings, deployment, _ = play(breaking("one", trip))
    assert findings.aborted == "EngineError: a step failed"
    assert deployment.restored == [("one", "a")]
    assert findings.passed is False


def test_a_mistake_in_a_drill_is_told_and_what_it_broke_put_back() -> None:
    async def stumble(_scene: Scene) -> None:
        raise KeyError("replicas")

    findings, deployment, _ = play(breaking("one", stumble))
    assert findings.aborted == "KeyError: 'replicas'"
    assert deployment.restored == [("one", "a")]


def test_what_can_not_be_broken_is_put_back_all_the_same() -> None:
    findings, deployment, _ = play(breaking("impossible"))
    assert "it will not break" in findings.aborted
    assert deployment.restored == [("impossible", "a")]


def test_a_drill_that_hurts_too_much_is_ended_and_put_back() -> None:
    made = replace(breaking("all"), expected_error_share=0.3)
    findings, deployment, said = play(made, pace=replace(PACE, fault_s=30.0))
    assert "failed, more than the 30% that this drill may cost" in findings.aborted
    assert deployment.restored == [("all", "a")]
    assert any("ended" in line for line in said)


def test_what_can_not_be_put_back_is_told_loudly_and_the_rest_goes_on() -> None:
    async def more(scene: Scene) -> None:
        await scene.break_("two", "b")

    findings, deployment, said = play(breaking("one", more), fails="two")
    assert deployment.restored == [("two", "b"), ("one", "a")]
    assert findings.left_broken == ["two of b: it does not come back"]
    assert said == ["NOT PUT BACK: two of b: it does not come back"]


def test_a_signal_puts_back_what_is_broken() -> None:
    async def whole() -> Broken:
        async with ChatServer() as server:
            deployment = Broken(server)
            runner = DrillRunner(deployment, replace(PACE, fault_s=60.0), 1, lambda _: None)
            running = asyncio.create_task(runner.run(breaking("one")))
            while not deployment.broken:
                await asyncio.wait((running,), timeout=0.01)
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
            return deployment

    assert asyncio.run(whole()).restored == [("one", "a")]


def test_a_deployment_that_can_not_be_made_ready_is_no_pass() -> None:
    findings, _, _ = play(breaking("one"), is_startable=False)
    assert findings.aborted == "the deployment could not be made ready: it does not start"
    assert findings.passed is False


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"needs_own": "it kills by process id"}, "it kills by process id"),
        ({"least_replicas": 4}, "it needs 4 replicas, and there are 3"),
        ({"broken_replicas": 3}, "it breaks 3 replicas at once, and at most 2 may be broken"),
        ({"faults": ("unknown", "kill")}, "unknown: the file has none"),
        ({"faults": ("of a",), "broken_replicas": 2}, "of a: only a can be broken so"),
    ],
)
def test_a_drill_that_can_not_run_here_says_why(changes: dict[str, Any], why: str) -> None:
    findings, deployment, _ = play(drill(**changes))
    assert (findings.skipped, findings.passed) == (why, None)
    assert deployment.broken == []


def test_spikes_need_a_peak_that_is_known() -> None:
    findings, _, _ = play(burst_spike.DRILL, pace=replace(PACE, peak_per_s=None))
    assert "peak_per_s" in findings.skipped


@pytest.mark.parametrize("module", [node_lost, engine_freeze, out_of_memory, several_restarts, burst_spike])
def test_the_drills_themselves_break_and_put_back_as_they_say(module: Any) -> None:
    made = replace(module.DRILL, expected_error_share=1.0)
    findings, deployment, _ = play(made)
    assert not findings.aborted
    assert [fault for fault, _ in deployment.broken] == [*made.faults] * max(1, made.broken_replicas) * bool(
        made.faults
    )
    assert sorted(deployment.restored) == sorted(deployment.broken)
    assert {verdict.name for verdict in findings.verdicts} == {bar.name for bar in made.bars}
    assert findings.outcomes.keys() == {"ok"}


def test_the_rate_is_measured_with_a_closed_loop() -> None:
    async def whole() -> Pace:
        async with ChatServer() as server:
            return await affordable(Broken(server).target, PACE, 2, 0.1)

    pace = asyncio.run(whole())
    assert pace.peak_per_s is not None
    assert pace.peak_per_s >= pace.rate_per_s > 0.0
