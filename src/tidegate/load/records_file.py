"""One row per request: Parquet where pyarrow is installed, else JSON lines. Columns are the fields of ``Sample``."""

from __future__ import annotations

import gzip
import importlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from tidegate.errors import ConfigError
from tidegate.load.played import Played
from tidegate.load.sample import Sample
from tidegate.load.whole_file import draft_of

PARQUET, JSON_LINES = ".parquet", ".jsonl.gz"
COLUMNS = Sample.__struct_fields__
DEFAULTS = {each.name: each.default for each in msgspec.structs.fields(Sample)}
BATCH_ROWS = 20_000
"""Written at a time: memory for a copy of so many rows, not of all."""
HOW_TO_GET = "records as JSON lines: for Parquet install pyarrow (pip install 'tidegate[parquet]')"
_PLAIN = {str: "string", int: "int64", float: "float64", bool: "bool_"}


def parquet_library() -> Any:
    """pyarrow with its Parquet part; None where it is not installed."""
    try:
        importlib.import_module("pyarrow.parquet")
        return importlib.import_module("pyarrow")
    except ImportError:
        return None


def write_records(played: Sequence[Played], stem: Path) -> Path:
    """Write ``stem`` with the ending of its kind, and say which. Raises ConfigError where it can't be written."""
    library = parquet_library()
    path = stem.with_name(stem.name + (JSON_LINES if library is None else PARQUET))
    samples = (sample for each in played for sample in each.samples)
    with draft_of(path) as draft:
        if library is None:
            _write_lines(samples, draft)
        else:
            _write_parquet(library, samples, draft)
    return path


def read_records(path: Path) -> list[Sample]:
    """Rows in their order. A column that an older file lacks has its default.

    Raises ConfigError for a file that can't be read, is cut short, or holds something else.
    """
    try:
        rows = _parquet_rows(path) if path.suffix == PARQUET else _line_rows(path)
        return [msgspec.convert(row, Sample) for row in rows]
    except OSError as error:
        raise ConfigError([f"{path}: {error.strerror or error}"]) from error
    except (EOFError, ValueError, msgspec.DecodeError) as error:
        raise ConfigError([f"{path}: these are no records of `tidegate load`: {error}"]) from error


def _row_of(sample: Sample) -> dict[str, Any]:
    return {column: getattr(sample, column) for column in COLUMNS}


def _write_lines(samples: Iterable[Sample], draft: Path) -> None:
    with gzip.open(draft, "wb", compresslevel=5) as file:
        for sample in samples:
            file.write(msgspec.json.encode(_row_of(sample)) + b"\n")


def _line_rows(path: Path) -> Iterator[list[Any]]:
    with gzip.open(path, "rb") as file:
        for line in file:
            row = msgspec.json.decode(line, type=dict[str, Any])
            yield [row[name] if name in row else _default(name) for name in COLUMNS]


def _default(column: str) -> Any:
    """Of a column that an older file lacks."""
    return {} if column == "extra" else DEFAULTS[column]


def _write_parquet(library: Any, samples: Iterator[Sample], draft: Path) -> None:
    schema = _schema(library)
    with library.parquet.ParquetWriter(draft, schema, compression="zstd") as writer:
        while batch := list(islice(samples, BATCH_ROWS)):
            columns = [_column(batch, name) for name in COLUMNS]
            arrays = [library.array(each, field.type) for each, field in zip(columns, schema, strict=True)]
            writer.write_table(library.Table.from_arrays(arrays, schema=schema))


def _column(batch: list[Sample], name: str) -> list[Any]:
    if name == "extra":
        return [list(sample.extra.items()) for sample in batch]
    return [getattr(sample, name) for sample in batch]


def _schema(library: Any) -> Any:
    """A type that is not plain: an outcome is text, ``queue_s`` may be missing, ``extra`` maps text to text."""
    special = {
        "outcome": library.string(),
        "queue_s": library.float64(),
        "extra": library.map_(library.string(), library.string()),
    }
    types = ((each.name, each.type) for each in msgspec.structs.fields(Sample))
    return library.schema(
        [(name, special[name] if name in special else getattr(library, _PLAIN[kind])()) for name, kind in types]
    )


def _parquet_rows(path: Path) -> Iterator[list[Any]]:
    library = parquet_library()
    if library is None:
        raise ConfigError([f"{path}: reading Parquet needs pyarrow (pip install 'tidegate[parquet]')"])
    with library.parquet.ParquetFile(path) as file:
        for batch in file.iter_batches(BATCH_ROWS):
            columns = [_values(batch, name) for name in COLUMNS]
            yield from map(list, zip(*columns, strict=True))


def _values(batch: Any, name: str) -> list[Any]:
    """Of one column. Maps are slow to take apart, and mostly empty."""
    if name not in batch.schema.names:
        return [_default(name) for _ in range(batch.num_rows)]
    column = batch.column(name)
    if name != "extra":
        found: list[Any] = column.to_pylist()
        return found
    if len(column.keys) == 0:
        return [{} for _ in range(batch.num_rows)]
    return [dict(pairs or ()) for pairs in column.to_pylist()]
