"""The service's log, also where it cannot be written."""

from __future__ import annotations

import errno
import io
import os

import pytest

from tidegate.cli.log_lines import LogLines


class Disk(io.StringIO):
    """Standard output into a file on a disk that can be full."""

    is_full = False

    def flush(self) -> None:
        if self.is_full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_line_has_its_level(capsys: pytest.CaptureFixture[str]) -> None:
    log = LogLines()
    log.say("info", "one")
    log.say("warning", "two")
    assert capsys.readouterr().out == "[INFO] one\n[WARN] two\n"


def test_a_full_disk_does_not_end_the_service_and_is_told_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    disk, log = Disk(), LogLines()
    monkeypatch.setattr("sys.stdout", disk)
    disk.is_full = True
    log.say("info", "lost")
    log.say("info", "lost too")
    disk.is_full = False
    disk.truncate(0)
    disk.seek(0)
    log.say("error", "there again")
    log.say("info", "and on")
    told, *rest = disk.getvalue().splitlines()
    assert told == f"[WARN] this log could not be written 2 times: {os.strerror(errno.ENOSPC)}"
    assert rest == ["[ERROR] there again", "[INFO] and on"]


def test_a_reader_that_is_gone_does_not_end_the_service(monkeypatch: pytest.MonkeyPatch) -> None:
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w", buffering=1) as gone:
        monkeypatch.setattr("sys.stdout", gone)
        LogLines().say("info", "to nobody")
        monkeypatch.undo()
        with pytest.raises(BrokenPipeError):
            gone.close()
