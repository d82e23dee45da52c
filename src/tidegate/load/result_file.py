"""A finished run as JSON: for scripts, for a later comparison, and to draw its page again."""

from __future__ import annotations

import dataclasses
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec

from tidegate.errors import ConfigError
from tidegate.load.result import Result
from tidegate.load.whole_file import write_whole

FORMAT = 1
"""Raised when an older reader would misread a file. A field that is added needs no new number."""


def result_json(result: Result) -> bytes:
    """Indented JSON. What is not a field of ``Result`` is for readers that are not Tidegate."""
    head = {"format": FORMAT, "tidegate": version("tidegate"), "passed": result.passed}
    fields = {each.name: getattr(result, each.name) for each in dataclasses.fields(result)}
    return msgspec.json.format(msgspec.json.encode({**head, **fields}), indent=1) + b"\n"


def write_result(result: Result, path: Path) -> None:
    """Whole or not at all. Raises ConfigError where it can't be written."""
    write_whole(path, result_json(result))


def read_result(path: Path) -> Result:
    """Fields that this version does not know are passed over, those that an older file lacks have their defaults.

    Raises ConfigError for a file that can't be read or is no result of a load run.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ConfigError([f"{path}: {error.strerror or error}"]) from error
    try:
        _check_format(msgspec.json.decode(content), path)
        return msgspec.json.decode(content, type=Result)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConfigError([f"{path}: this is no result of `tidegate load` (its result.json): {error}"]) from error


def _check_format(document: Any, path: Path) -> None:
    found = document.get("format") if isinstance(document, dict) else None
    if isinstance(found, int) and found > FORMAT:
        raise ConfigError([f"{path}: written by a newer Tidegate (format {found}, this one reads {FORMAT})"])
