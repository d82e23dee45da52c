"""Memory caps, with folders in place of the kernel's."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tidegate.errors import EngineError
from tidegate.load.drills.memory_cap import MemoryCap


def made(root: Path, *files: str) -> MemoryCap:
    """A cap whose files the kernel would have made."""
    cap = MemoryCap("a", (root,))
    cap.folder.mkdir()
    for name in files:
        (cap.folder / name).write_text("4096")
    return cap


@pytest.mark.parametrize(
    ("limit", "usage", "unlimited"),
    [("memory.limit_in_bytes", "memory.usage_in_bytes", "-1"), ("memory.max", "memory.current", "max")],
)
def test_both_versions_of_control_groups_are_known(tmp_path: Path, limit: str, usage: str, unlimited: str) -> None:
    cap = made(tmp_path, limit, usage)
    cap.make()
    cap.limit(cap.used_bytes + 1)
    assert (cap.folder / limit).read_text() == "4097"
    cap.lift()
    assert (cap.folder / limit).read_text() == unlimited


def test_without_a_memory_controller_there_is_no_cap(tmp_path: Path) -> None:
    assert "no memory controller" in MemoryCap.why_not((tmp_path,))
    with pytest.raises(EngineError, match="no memory controller"):
        MemoryCap("a", (tmp_path,)).make()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_nobody_may_write_is_told(tmp_path: Path) -> None:
    assert "No such file" in MemoryCap.why_not((tmp_path / "none",))


def test_a_process_joins_before_it_becomes_the_engine(tmp_path: Path) -> None:
    cap = MemoryCap("a", (tmp_path,))
    command = (*cap.prefix, "engine", "--port", "1")
    assert command[:2] == ("/bin/sh", "-c")
    assert f"{cap.folder}/cgroup.procs" in command[2]
    assert command[3:] == ("sh", "engine", "--port", "1")


def test_groups_of_drills_that_were_killed_are_swept_away(tmp_path: Path) -> None:
    stale, ours = tmp_path / "tidegate-drill-999999999-a", tmp_path / f"tidegate-drill-{os.getpid()}-b"
    for each in (stale, ours):
        each.mkdir()
    made(tmp_path, "memory.max").make()
    assert not stale.exists()
    assert ours.exists()


def test_lifting_and_removing_what_is_gone_is_harmless(tmp_path: Path) -> None:
    cap = MemoryCap("a", (tmp_path,))
    cap.lift()
    cap.remove()
    assert not cap.folder.exists()
