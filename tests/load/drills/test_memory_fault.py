"""Memory that runs out: a real process, in a control group where this machine has any."""

from __future__ import annotations

import asyncio
import resource
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.load.drills.test_own_deployment import ENGINE, GATEWAY, LINES
from tidegate.errors import EngineError
from tidegate.load.drills import memory_fault
from tidegate.load.drills.catalogue import OWN_FAULTS
from tidegate.load.drills.drill_engine import OwnEngine
from tidegate.load.drills.memory_cap import MemoryCap
from tidegate.load.drills.memory_fault import MEMORY_CAP, MemoryRunsOut
from tidegate.load.drills.memory_hog import STEP_BYTES
from tidegate.load.drills.own_deployment import OwnDeployment
from tidegate.load.drills.setup import Setup


def capped(name: str) -> OwnEngine:
    return OwnEngine(name, LINES.append, MemoryCap(name), ENGINE)


def bare(name: str) -> OwnEngine:
    return OwnEngine(name, LINES.append, command=ENGINE)


def play(folder: Path, setup: Setup, work: Any) -> OwnDeployment:
    own = OwnDeployment(folder, 1, OWN_FAULTS, LINES.append, GATEWAY)

    async def whole() -> None:
        try:
            await own.prepare(setup)
            await work(own)
        finally:
            await own.close()

    asyncio.run(whole())
    return own


@pytest.mark.skipif(MemoryCap.why_not() != "", reason="no control groups for memory here")
def test_the_kernel_ends_an_engine_whose_group_is_full_and_its_next_life_is_in_it(tmp_path: Path) -> None:
    async def work(own: OwnDeployment) -> None:
        engine = own.embedded("replica-1")
        await own.break_(MEMORY_CAP, "replica-1")
        await own.restore(MEMORY_CAP, "replica-1")
        assert engine.lives == 2
        assert engine.cap is not None
        assert str(engine.pid) in (engine.cap.folder / "cgroup.procs").read_text().split()
        assert "capped at" in own.take_remarks()[0]

    play(tmp_path, Setup(engine=capped), work)
    assert LINES[-1].startswith("replica-1")
    assert any("killed by SIGKILL" in line for line in LINES)


def test_without_control_groups_its_address_space_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The stand-in needs no more memory for a prompt: the limit is seen, and that it survives is told.
    monkeypatch.setattr(memory_fault, "ENDED_WITHIN_S", 0.1)

    async def work(own: OwnDeployment) -> None:
        pid = own.pid("replica-1")
        with pytest.raises(EngineError, match="replica-1 was not ended by its memory cap"):
            await own.break_(MEMORY_CAP, "replica-1")
        assert pid is not None
        assert resource.prlimit(pid, resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY
        assert "RLIMIT_AS" in own.take_remarks()[0]
        await own.embedded("replica-1").lose()
        with pytest.raises(EngineError, match="does not run"):
            await own.break_(MEMORY_CAP, "replica-1")
        await own.restore(MEMORY_CAP, "replica-1")

    play(tmp_path, Setup(engine=bare), work)


def test_it_is_a_fault_of_linux(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not MemoryRunsOut().why_not()
    monkeypatch.setattr(sys, "platform", "darwin")
    assert MemoryRunsOut().why_not() == "it needs Linux"


def test_a_hog_takes_what_it_was_told_to_take_and_holds_it(tmp_path: Path) -> None:
    async def whole() -> int:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tidegate.load.drills.memory_hog", str(tmp_path), str(2 * STEP_BYTES),
            stdin=asyncio.subprocess.PIPE,
        )  # fmt: skip
        assert process.stdin is not None
        process.stdin.close()
        assert await process.wait() == 0
        return process.pid

    pid = asyncio.run(whole())
    assert (tmp_path / "cgroup.procs").read_text() == str(pid)
