"""Where results of drills are kept: a folder per run, the last one beside them, and a lock against two at a time."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tidegate.errors import ConfigError
from tidegate.load.drills.drill_page import drill_page
from tidegate.load.drills.drill_results import DrillResults, read_results
from tidegate.load.whole_file import write_whole

LAST, LOCK = "last.json", ".lock"


class DrillFolder:
    def __init__(self, path: Path) -> None:
        self.path = path

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Nobody else drills into this folder meanwhile. Raises ConfigError where somebody does."""
        with self._lock_file() as descriptor:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                by = os.pread(descriptor, 32, 0).decode(errors="replace").strip() or "another process"
                raise ConfigError(
                    [f"{self.path}: drills run already (process {by}); two at a time would tell nothing"]
                ) from None
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, str(os.getpid()).encode(), 0)
            # The kernel gives it back when the descriptor is closed, however we end.
            yield

    def keep(self, results: DrillResults) -> list[Path]:
        """Write JSON and page of one run; the files. Raises ConfigError where they can't be written."""
        folder = self._new_folder(results.began)
        content = results.to_json()
        found = [folder / "drill.json", folder / "drill.html"]
        write_whole(found[0], content)
        write_whole(found[1], drill_page(results).encode())
        write_whole(self.path / LAST, content)
        return found

    def last(self) -> DrillResults:
        """Raises ConfigError where nothing was kept yet."""
        path = self.path / LAST
        try:
            return read_results(path.read_bytes(), str(path))
        except OSError as error:
            raise ConfigError([f"{path}: {error.strerror}; no drill has been run into this folder"]) from error

    @contextmanager
    def _lock_file(self) -> Iterator[int]:
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self.path / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise ConfigError([f"--out {self.path}: {error.strerror}"]) from error
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def _new_folder(self, began: str) -> Path:
        stem = began[:19].replace(":", "").replace("-", "").replace("T", "-")
        for number in range(1, 1000):
            folder = self.path / (stem if number == 1 else f"{stem}-{number}")
            try:
                folder.mkdir()
            except FileExistsError:
                continue
            except OSError as error:
                raise ConfigError([f"{folder}: {error.strerror}"]) from error
            return folder
        raise ConfigError([f"{self.path}: a thousand runs began at {began}"])
