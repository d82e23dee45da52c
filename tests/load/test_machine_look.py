from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tidegate.errors import EngineError
from tidegate.load import machine_look
from tidegate.load.machine_look import CpuLook, GpuLook, gpu_figures

TOLD = "0, 87, 71234, 412.55\n1, 0, 12, [N/A]\n"


def test_cpus_are_busy_as_far_as_they_were_not_idle_since_the_last_look(tmp_path: Path) -> None:
    stat = tmp_path / "stat"
    look = CpuLook(stat=stat)
    stat.write_text("cpu  100 0 100 700 100 0 0 0 0 0\ncpu0 1 1\n")
    assert asyncio.run(look.read()) == {}
    stat.write_text("cpu  160 0 100 730 110 0 0 0 0 0\ncpu0 1 1\n")
    assert asyncio.run(look.read()) == {("%", "busy"): pytest.approx(60.0)}
    assert asyncio.run(look.read()) == {}


def test_a_machine_without_that_file_is_told_so(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="tells no CPU times"):
        asyncio.run(CpuLook(stat=tmp_path / "none").read())


def test_each_gpu_has_its_lines_and_what_it_does_not_tell_is_left_out() -> None:
    found = gpu_figures(TOLD)
    assert found["%", "GPU 0: utilisation"] == 87
    assert found["MiB", "GPU 1: memory"] == 12
    assert ("W", "GPU 1: power") not in found


def script(path: Path, text: str) -> str:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def test_the_tool_is_asked_and_its_failure_is_told(tmp_path: Path) -> None:
    told = GpuLook(command=script(tmp_path / "good", "echo '3, 50, 10, 99.5'"))
    assert asyncio.run(told.read())["W", "GPU 3: power"] == 99.5
    broken = GpuLook(command=script(tmp_path / "bad", "echo no driver; exit 9"))
    with pytest.raises(EngineError, match="nvidia-smi: no driver"):
        asyncio.run(broken.read())


def test_no_tool_is_no_gpu() -> None:
    with pytest.raises(EngineError, match="no GPU here"):
        asyncio.run(GpuLook(command="no-such-tool-anywhere").read())


def test_a_tool_that_hangs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_look, "SMI_WITHIN_S", 0.1)
    with pytest.raises(TimeoutError):
        asyncio.run(GpuLook(command=script(tmp_path / "slow", "exec sleep 30")).read())
