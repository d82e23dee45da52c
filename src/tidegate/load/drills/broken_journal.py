"""What a drill has broken and not put back yet, on disk: the next run puts it back where this one could not."""

from __future__ import annotations

from pathlib import Path

import msgspec

from tidegate.load.whole_file import write_whole

Entry = tuple[str, str | None]
"""A fault and its replica; None: of the whole service."""


class BrokenJournal:
    """Kept whole at every step: even a ``kill -9`` of the drill leaves it right."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def entries(self) -> list[Entry]:
        """The oldest first; of a file that can't be read nothing."""
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=list[Entry])
        except (OSError, msgspec.DecodeError):
            return []

    def note(self, fault: str, replica: str | None) -> None:
        """Raises ConfigError where it can't be written: then nothing may be broken."""
        self._write([*(each for each in self.entries() if each != (fault, replica)), (fault, replica)])

    def clear(self, fault: str, replica: str | None) -> None:
        self._write([each for each in self.entries() if each != (fault, replica)])

    def _write(self, entries: list[Entry]) -> None:
        if entries:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(self._path, msgspec.json.encode(entries))
        else:
            self._path.unlink(missing_ok=True)
