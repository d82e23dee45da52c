"""Where the files of a run go."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from tidegate.errors import ConfigError
from tidegate.load.played import Played
from tidegate.load.records_file import HOW_TO_GET, JSON_LINES, PARQUET, parquet_library, write_records
from tidegate.load.report_page import write_page
from tidegate.load.result import Result
from tidegate.load.result_file import write_result
from tidegate.load.whole_file import write_whole

REPORT, RESULT, RECORDS = "report.html", "result.json", "records"


class RunFolder:
    """Made, and tried, before anything is sent: half an hour of load must not end at a folder that can't be written."""

    def __init__(self, path: Path) -> None:
        """Raises ConfigError where it can't be made or written to."""
        self.path = path
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError([f"{path}: this folder can't be made: {error.strerror or error}"]) from error
        write_whole(path / ".tidegate-load", b"")
        (path / ".tidegate-load").unlink(missing_ok=True)

    def write(self, result: Result, played: Sequence[Played], against: Result | None = None) -> list[Path]:
        """The files that stand. One that can't be written becomes a note of ``result``, and the others still come.

        The page stands first, and is written last: it shows the notes.
        """
        self._clear()
        if parquet_library() is None:
            result.notes.append(HOW_TO_GET)
        written: list[Path] = []

        def attempt(write: Callable[[], Path]) -> None:
            try:
                written.append(write())
            except ConfigError as error:
                result.notes.extend(error.problems)

        attempt(lambda: write_records(played, self.path / RECORDS))
        attempt(lambda: self._result(result))
        attempt(lambda: self._page(result, played, against))
        return [*reversed(written)]

    def _result(self, result: Result) -> Path:
        write_result(result, self.path / RESULT)
        return self.path / RESULT

    def _page(self, result: Result, played: Sequence[Played], against: Result | None) -> Path:
        write_page(result, self.path / REPORT, played, against)
        return self.path / REPORT

    def _clear(self) -> None:
        """Files of an earlier run must not be taken for this one's."""
        for name in (REPORT, RESULT, RECORDS + PARQUET, RECORDS + JSON_LINES):
            with suppress(OSError):
                (self.path / name).unlink(missing_ok=True)
