"""A command line run in this process."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from tidegate.cli.main import app


@dataclass(frozen=True)
class Ended:
    """How a command ended, and what it said."""

    status: int
    out: str
    err: str


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> Ended:
    """``tidegate ARGUMENTS``."""
    with pytest.raises(SystemExit) as ended:
        app(arguments)
    captured = capsys.readouterr()
    code = ended.value.code
    return Ended(code if isinstance(code, int) else 0, captured.out, captured.err)
