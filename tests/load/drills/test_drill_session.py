"""A whole run: measured, played, interrupted, closed."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from tests.load.drills.chat_server import ChatServer
from tests.load.drills.made_findings import drill
from tests.load.drills.test_drill_runner import Broken, breaking
from tests.load.drills.test_own_deployment import GATEWAY, LINES, SETUP
from tidegate.load.drills import drill_session, gateway_killed
from tidegate.load.drills.catalogue import OWN_FAULTS
from tidegate.load.drills.drill import Drill
from tidegate.load.drills.drill_pace import Pace
from tidegate.load.drills.drill_results import DrillResults
from tidegate.load.drills.drill_runner import DrillRunner
from tidegate.load.drills.drill_session import DrillSession, SessionOptions
from tidegate.load.drills.findings import Findings
from tidegate.load.drills.own_deployment import OwnDeployment, OwnFault
from tidegate.load.drills.scene import Scene
from tidegate.load.drills.setup import Setup

PACE = Pace(baseline_s=0.05, fault_s=0.05, after_s=0.05, rate_per_s=100.0, patience_s=1.0)


class Own(Broken):
    """In place of the own deployment: its server is started with it. ``made``: the latest one."""

    is_own = True
    made: Own

    def __init__(
        self, _folder: Path, _replicas: int, _faults: Mapping[str, OwnFault], _say: Callable[[str], None]
    ) -> None:
        super().__init__(ChatServer())
        self.is_closed = False
        Own.made = self

    async def prepare(self, _setup: Setup) -> None:
        if not self.server.url:
            await self.server.__aenter__()

    async def close(self) -> None:
        await self.server.__aexit__()
        self.is_closed = True


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drill_session, "OwnDeployment", Own)
    monkeypatch.setattr(drill_session, "SHORT", PACE)
    monkeypatch.setattr(drill_session, "RATED_SHORT_S", 0.05)


def play(
    folder: Path, *drills: Drill, rate_per_s: float | None = None
) -> tuple[DrillResults, list[Findings], list[str]]:
    said: list[str] = []
    told: list[Findings] = []
    options = SessionOptions(is_short=True, folder=folder, command="tidegate drill all", rate_per_s=rate_per_s)
    return DrillSession(options, {}, said.append, told.append).play(drills), told, said


def test_the_rate_is_measured_and_every_drill_is_told_when_it_is_over(tmp_path: Path) -> None:
    results, told, said = play(tmp_path, breaking("one"), drill(needs_own="never mind"))
    assert results.findings == told
    assert len(told) == 2
    assert 0.0 < results.rate_per_s <= 5.0
    assert "the steady load is" in said[0]
    assert Own.made.is_closed


def test_a_rate_that_was_given_is_kept(tmp_path: Path) -> None:
    assert play(tmp_path, rate_per_s=60.0)[0].rate_per_s == 60.0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_puts_back_what_is_broken_and_closes_what_was_started(tmp_path: Path, number: signal.Signals) -> None:
    async def interrupt(scene: Scene) -> None:
        os.kill(os.getpid(), number)
        os.kill(os.getpid(), number)
        await scene.hold(60.0)

    results, told, said = play(tmp_path, breaking("one", interrupt), breaking("two"), rate_per_s=100.0)
    assert told == []
    assert results.notes == ["interrupted: the drills that follow were not played"]
    assert Own.made.restored == [("one", "a")]
    assert Own.made.is_closed
    assert any("put back first" in line for line in said)


def test_the_gateway_is_killed_in_both_ways_and_nothing_is_left_of_it(tmp_path: Path) -> None:
    own = OwnDeployment(tmp_path, 1, OWN_FAULTS, LINES.append, GATEWAY)

    async def whole() -> Findings:
        try:
            made = replace(gateway_killed.DRILL, setup=SETUP)
            return await DrillRunner(own, replace(PACE, patience_s=10.0), 1, LINES.append).run(made)
        finally:
            await own.close()

    findings = asyncio.run(whole())
    assert findings.aborted == ""
    assert findings.figures["engines_restarted"] == 0.0
    assert findings.figures["left_behind"] == 0.0
    assert 0.0 < (findings.figures["data_back_s"] or 0.0) < 10.0
    assert own.engines == {}
