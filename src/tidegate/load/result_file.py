"""A finished run as JSON: for scripts, for a later comparison, and to draw its page again."""

from __future__ import annotations

import dataclasses
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec

from tidegate.errors import ConfigError
from tidegate.load.definitions import DEFINITIONS
from tidegate.load.distribution import Distribution
from tidegate.load.length_figures import LengthFigures
from tidegate.load.phase_figures import Moment, PartFigures, PhaseFigures
from tidegate.load.result import Result
from tidegate.load.whole_file import write_whole

FORMAT = 1
"""Raised when an older reader would misread a file. A field that is added needs no new number."""

OF_THE_RUN = {
    "format": "Of this file; raised when an older reader would misread it.",
    "tidegate": "The version that wrote it.",
    "passed": "true: every bar was met and the figures are valid; null: no bars were asked for.",
    "plan": "Name of the plan.",
    "seed": "Equal seeds send equal requests.",
    "targets": "Names of the services that were asked; the first is what the others are compared with.",
    "began": "ISO 8601, with the time zone.",
    "command": "The command line that makes this run again.",
    "manifest": "What was sent, with hashes, and what sent it.",
    "phases": "Figures, for each phase and target.",
    "verdicts": "For each bar: name, row of the requirements, bar, measured, passed (null: not judged), why.",
    "invalid": "Why the figures tell about the generator or the plan; no bar is passed by them.",
    "consistency": "Same question, same answer: of the phases that asked it.",
    "break_point": "Where a run until failure ended.",
    "knee": "Where latency starts to degrade.",
    "compared": "By target but the first: its ratios to the first over the turns, with 95 % intervals.",
    "score_card": "Of several targets: who is better, and by which figure.",
    "engine": "Readings of the target's own metrics, of CPUs and of GPUs over the run.",
    "notes": "What else there is to know.",
}
SCHEMA: dict[str, str] = {
    **OF_THE_RUN,
    **{f"phases[].{each.name}": DEFINITIONS[each.name] for each in dataclasses.fields(PhaseFigures)},
    **{f"phases[].all.{each.name}": DEFINITIONS[each.name] for each in dataclasses.fields(PartFigures)},
    **{f"phases[].all.e2e.{each.name}": DEFINITIONS[each.name] for each in dataclasses.fields(Distribution)},
    **{f"phases[].moments[].{each.name}": DEFINITIONS[each.name] for each in dataclasses.fields(Moment)},
    **{f"phases[].lengths[].{each.name}": DEFINITIONS[each.name] for each in dataclasses.fields(LengthFigures)},
    **{f"phases[].all.{name}": text for name, text in DEFINITIONS.items() if name.startswith("outcomes.")},
}
"""What each field of the file means. The other distributions, labels and tenants have the fields of the first."""


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
