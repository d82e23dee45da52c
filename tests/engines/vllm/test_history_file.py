from __future__ import annotations

import json
from pathlib import Path

from tidegate.engines.vllm.history_file import SAVE_EVERY, HistoryFile
from tidegate.policy.lengths import LengthHistory


def learned(count: int) -> LengthHistory:
    history = LengthHistory()
    for _ in range(count):
        history.record(256, 64)
    return history


def test_what_was_saved_is_loaded(tmp_path: Path) -> None:
    path = tmp_path / "new folder" / "lengths.json"
    HistoryFile(str(path)).save(learned(20))
    file = HistoryFile(str(path))
    assert file.load().dump() == learned(20).dump()
    assert file.problem is None
    assert [each.name for each in path.parent.iterdir()] == ["lengths.json"]


def test_without_a_file_nothing_is_known_and_nothing_is_wrong(tmp_path: Path) -> None:
    file = HistoryFile(str(tmp_path / "lengths.json"))
    assert len(file.load()) == 0
    assert file.problem is None


def test_a_broken_file_costs_a_cold_start_and_is_said(tmp_path: Path) -> None:
    path = tmp_path / "lengths.json"
    for text in ("{", json.dumps({"version": 1, "classes": {"9": [7]}})):
        path.write_text(text)
        file = HistoryFile(str(path))
        assert len(file.load()) == 0
        assert file.problem is not None
        assert "learned anew" in file.problem


def test_it_is_saved_every_so_many_answers(tmp_path: Path) -> None:
    path = tmp_path / "lengths.json"
    file = HistoryFile(str(path))
    for _ in range(SAVE_EVERY - 1):
        file.note(learned(10))
    assert not path.exists()
    file.note(learned(10))
    assert path.exists()


def test_a_place_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    file = HistoryFile(str(tmp_path / "file" / "lengths.json"))
    file.save(learned(10))
    assert file.problem is not None
    assert "cannot be written" in file.problem
