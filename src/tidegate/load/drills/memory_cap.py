"""A memory cap as a container has one: a control group of its own (version 1 or 2)."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from tidegate.errors import EngineError

ROOTS = (Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup"))
"""Version 1, whose memory controller has a tree of its own, and version 2."""
PREFIX = "tidegate-drill-"
LIMITS = ("memory.limit_in_bytes", "memory.max")
USAGES = ("memory.usage_in_bytes", "memory.current")
UNLIMITED = {"memory.limit_in_bytes": "-1", "memory.max": "max"}


class MemoryCap:
    """Without a limit until ``limit`` sets one."""

    def __init__(self, name: str, roots: tuple[Path, ...] = ROOTS) -> None:
        self.folder = _root(roots) / f"{PREFIX}{os.getpid()}-{name}"

    @classmethod
    def why_not(cls, roots: tuple[Path, ...] = ROOTS) -> str:
        """Why there can be none on this machine; "": there can."""
        try:
            trial = cls("trial", roots)
            trial.make()
            trial.remove()
        except (EngineError, OSError) as error:
            return f"no control group for memory can be made here ({error})"
        return ""

    @property
    def prefix(self) -> tuple[str, ...]:
        """Before a command: it joins the group, and so does all that it starts."""
        return ("/bin/sh", "-c", f'echo $$ > "{self.folder}/cgroup.procs" && exec "$@"', "sh")

    @property
    def used_bytes(self) -> int:
        return int(self._file(USAGES).read_text())

    def make(self) -> None:
        """Raises EngineError where the kernel gives it no memory controller."""
        self._sweep()
        try:
            self.folder.mkdir(exist_ok=True)
        except OSError as error:
            raise EngineError(f"{self.folder}: {error.strerror}") from error
        if not any((self.folder / name).exists() for name in LIMITS):
            self.remove()
            raise EngineError(f"{self.folder} has no memory controller")

    def limit(self, size_bytes: int) -> None:
        """Beyond it the kernel ends a process of the group. Raises OSError."""
        self._file(LIMITS).write_text(str(size_bytes))

    def lift(self) -> None:
        with contextlib.suppress(OSError):
            limit = self._file(LIMITS)
            limit.write_text(UNLIMITED[limit.name])

    def remove(self) -> None:
        """Harmless where there is none, and where a process is in it still."""
        with contextlib.suppress(OSError):
            self.folder.rmdir()

    def _sweep(self) -> None:
        """Groups of drills that were killed: the kernel keeps those that are in use."""
        for path in self.folder.parent.glob(f"{PREFIX}*"):
            pid = path.name.removeprefix(PREFIX).partition("-")[0]
            if not Path(f"/proc/{pid}").exists():
                with contextlib.suppress(OSError):
                    path.rmdir()

    def _file(self, names: tuple[str, ...]) -> Path:
        return next((path for name in names if (path := self.folder / name).exists()), self.folder / names[0])


def _root(roots: tuple[Path, ...]) -> Path:
    return next((root for root in roots if root.is_dir()), roots[-1])
