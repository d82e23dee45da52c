"""The tests play the look-alikes, whatever the desk they run on has set."""

from __future__ import annotations

import pytest

from tidegate.simulate.traces import FOLDER_VARIABLE


@pytest.fixture(autouse=True)
def no_trace_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(FOLDER_VARIABLE, raising=False)
