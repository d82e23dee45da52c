from __future__ import annotations

import gzip
import importlib
import resource
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.load.samples_of_a_run import Shape, played
from tidegate.errors import ConfigError
from tidegate.load import records_file
from tidegate.load.client_outcome import ClientOutcome
from tidegate.load.records_file import read_records, write_records

PARQUET: Any = importlib.import_module("pyarrow.parquet")
PARTS = [
    played(Shape(name="soak", duration_s=20.0, endings={ClientOutcome.SHED: 0.2}, tenants=("a", "b"))),
    played(Shape(name="burst", duration_s=5.0), began_s=20.0),
]
PARTS[0].samples[3].extra = {"pages": "12", "kind": "table"}
PARTS[0].samples[4].queue_s = None
PARTS[0].samples[5].text = 'Zeile 1\nZeile 2 "ü" 猫'
ALL = [sample for each in PARTS for sample in each.samples]


@pytest.fixture(params=["parquet", "lines"])
def ending(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(records_file, "BATCH_ROWS", 100)
    if request.param == "parquet":
        return ".parquet"
    monkeypatch.setattr(records_file, "parquet_library", lambda: None)
    return ".jsonl.gz"


@pytest.fixture
def small_disk() -> Iterator[None]:
    """A limit on the size of files fails a write in the middle, as a full disk does."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2048, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_records_come_back_as_they_were(ending: str, tmp_path: Path) -> None:
    path = write_records(PARTS, tmp_path / "records")
    assert path == tmp_path / f"records{ending}"
    assert read_records(path) == ALL
    assert [*tmp_path.iterdir()] == [path]


def test_a_full_disk_is_told_and_leaves_no_half_of_a_file(ending: str, tmp_path: Path, small_disk: None) -> None:
    with pytest.raises(ConfigError, match=r"records.*: not written: .*File too large"):
        write_records(PARTS, tmp_path / "records")
    assert [*tmp_path.iterdir()] == []


def test_no_records_are_a_file_without_rows(ending: str, tmp_path: Path) -> None:
    assert read_records(write_records([], tmp_path / "records")) == []


def test_a_row_of_an_older_file_has_defaults_for_what_it_lacks(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl.gz"
    row = b'{"phase":"p","target":"t","index":0,"label":"l","due_at":0,"sent_at":1,"ended_at":2,"outcome":"ok"}\n'
    path.write_bytes(gzip.compress(row))
    assert read_records(path)[0].attempts == 1
    assert read_records(path)[0].extra == {}


def test_a_column_that_an_older_parquet_lacks_has_defaults(tmp_path: Path) -> None:
    path = write_records(PARTS, tmp_path / "records")
    table = PARQUET.read_table(path).drop_columns(["extra", "attempts", "text"])
    PARQUET.write_table(table, path)
    assert read_records(path)[3].extra == {}
    assert read_records(path)[3].text == ""
    assert read_records(path)[3].due_at == ALL[3].due_at


def test_a_column_without_a_default_that_lacks_is_no_record(tmp_path: Path) -> None:
    path = write_records(PARTS, tmp_path / "records")
    PARQUET.write_table(PARQUET.read_table(path).drop_columns(["label"]), path)
    with pytest.raises(ConfigError, match="no records of"):
        read_records(path)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("x.parquet", b"PAR1 and no more"),
        ("x.jsonl.gz", gzip.compress(b'{"phase": 1}\n', mtime=0)),
        ("x.jsonl.gz", gzip.compress(b"no json\n", mtime=0)),
        ("x.jsonl.gz", gzip.compress(b"x" * 5000, mtime=0)[:-12]),
    ],
)
def test_a_file_that_holds_something_else_is_told_so(name: str, content: bytes, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ConfigError, match="no records of"):
        read_records(tmp_path / name)


def test_what_can_not_be_read_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        read_records(tmp_path / "records.jsonl.gz")
    monkeypatch.setattr(records_file, "parquet_library", lambda: None)
    with pytest.raises(ConfigError, match="needs pyarrow"):
        read_records(tmp_path / "records.parquet")


def test_without_pyarrow_there_is_no_library(monkeypatch: pytest.MonkeyPatch) -> None:
    assert records_file.parquet_library() is not None
    monkeypatch.setattr(importlib, "import_module", _missing)
    assert records_file.parquet_library() is None


def _missing(name: str) -> None:
    raise ImportError(name)
