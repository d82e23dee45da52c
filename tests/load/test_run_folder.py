from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.load.samples_of_a_run import Shape, a_run
from tidegate.errors import ConfigError
from tidegate.load import records_file, run_folder
from tidegate.load.records_file import read_records
from tidegate.load.result_file import SCHEMA, read_result, result_json
from tidegate.load.run_folder import RunFolder

SMALL = (Shape(name="single", duration_s=10.0),)


def test_a_run_leaves_a_page_a_result_and_records(tmp_path: Path) -> None:
    result, played = a_run(SMALL)
    folder = RunFolder(tmp_path / "a" / "b")
    files = folder.write(result, played)
    assert [each.name for each in files] == ["report.html", "result.json", "records.parquet"]
    assert sorted(each.name for each in folder.path.iterdir()) == ["records.parquet", "report.html", "result.json"]
    assert read_result(files[1]) == result
    assert read_records(files[2]) == played[0].samples


def test_a_file_that_can_not_be_written_is_a_note_and_the_others_still_come(tmp_path: Path) -> None:
    result, played = a_run(SMALL)
    folder = RunFolder(tmp_path)
    (tmp_path / "records.parquet").mkdir()
    files = folder.write(result, played)
    assert [each.name for each in files] == ["report.html", "result.json"]
    assert "records.parquet: not written: Is a directory" in result.notes[-1]
    assert result.notes[-1].rpartition("/")[2] in files[0].read_text()


def test_files_of_an_earlier_run_do_not_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result, played = a_run(SMALL)
    RunFolder(tmp_path).write(result, played)
    for module in (records_file, run_folder):
        monkeypatch.setattr(module, "parquet_library", lambda: None)
    RunFolder(tmp_path).write(result, played)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["records.jsonl.gz", "report.html", "result.json"]
    assert "pip install 'tidegate[parquet]'" in result.notes[-1]


def test_a_folder_that_can_not_be_is_told_before_anything_is_sent(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="can't be made"):
        RunFolder(tmp_path / "file" / "inside")
    with pytest.raises(ConfigError, match="not written"):
        RunFolder(Path("/proc"))


def test_every_field_of_a_result_has_its_meaning(tmp_path: Path) -> None:
    assert SCHEMA["phases[].all.error_rate"].startswith("Unexpected")
    assert SCHEMA["phases[].all.outcomes.shed"].startswith("Refused for load")
    assert all(SCHEMA.values())
    document = json.loads(result_json(a_run(SMALL)[0]))
    assert document.keys() <= SCHEMA.keys() | {"phases", "verdicts"}
