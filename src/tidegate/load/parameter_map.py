"""The parameter map (SPEC S3-61): every set of parameters with its load test, in one table that is looked up when a
model is scaled or changed.

One JSON object a line, appended under a lock: nothing is ever rewritten, any tool can read it, and two runs that end
together both get in.
"""

from __future__ import annotations

import fcntl
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from tidegate.config.problem import suggestion
from tidegate.errors import ConfigError
from tidegate.load.map_entry import KEPT, MapEntry, flat
from tidegate.load.wish import Wish


@dataclass(frozen=True, slots=True)
class Change:
    """What differs between two rows."""

    params: dict[str, tuple[Any, Any]]
    """By dotted name; None: not set there."""
    about: dict[str, tuple[str, str]]
    """Model, card, engine, version or workload, where they differ: then figures tell of more than parameters."""
    figures: dict[str, tuple[float, float]]
    """By ``phase: figure``, of those that both have."""


@dataclass(frozen=True, slots=True)
class ParameterMap:
    path: Path

    def record(self, entry: MapEntry) -> MapEntry:
        """Append it; back comes the same with its id. Raises ConfigError where the file can't be written."""
        body = msgspec.json.encode(msgspec.structs.replace(entry, id=""))
        named = msgspec.structs.replace(entry, id=hashlib.sha256(body).hexdigest()[:8])
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("ab") as file:
                fcntl.flock(file, fcntl.LOCK_EX)
                file.write(msgspec.json.encode(named) + b"\n")
        except OSError as error:
            raise ConfigError([f"{self.path}: {error.strerror or error}"]) from error
        return named

    def rows(self, filters: Mapping[str, str] | None = None) -> list[MapEntry]:
        """Oldest first. Raises ConfigError with every line that is none of ours."""
        if not self.path.exists():
            return []
        found, problems = [], []
        try:
            lines = self.path.read_bytes().splitlines()
        except OSError as error:
            raise ConfigError([f"{self.path}: {error.strerror or error}"]) from error
        for number, line in enumerate(lines, start=1):
            try:
                entry = msgspec.json.decode(line, type=MapEntry)
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                problems.append(f"{self.path}:{number}:1: no row of a parameter map: {error}")
                continue
            found.append(entry)
        if problems:
            raise ConfigError(problems)
        return [entry for entry in found if entry.matches(filters or {})]

    def row(self, id_start: str) -> MapEntry:
        """By the beginning of its id. Raises ConfigError where none or several have it."""
        entries = self.rows()
        found = [entry for entry in entries if entry.id.startswith(id_start)]
        if len({entry.id for entry in found}) != 1:
            what = "several rows begin" if found else "no row begins"
            raise ConfigError([f"{self.path}: {what} with {id_start!r}{suggestion(id_start, (e.id for e in entries))}"])
        return found[-1]

    def suggest(self, wish: Wish, filters: Mapping[str, str] | None = None, phase: str = "") -> list[MapEntry]:
        """Rows that grant the wish, the best first; ``Wish.missed`` tells why another does not."""
        return wish.ranked(self.rows(filters), phase)


def compare(before: MapEntry, after: MapEntry) -> Change:
    """What changed, and what came of it."""
    old, new = dict(flat(before.params)), dict(flat(after.params))
    names = [*old, *(name for name in new if name not in old)]
    about = {name: (getattr(before, name), getattr(after, name)) for name in ABOUT_SETTING}
    pairs = {
        f"{phase}: {figure}": (part[figure], after.results[phase][figure])
        for phase, part in before.results.items()
        for figure in KEPT
        if figure in part and figure in after.results.get(phase, {})
    }
    return Change(
        params={name: (old.get(name), new.get(name)) for name in names if old.get(name) != new.get(name)},
        about={name: pair for name, pair in about.items() if pair[0] != pair[1]},
        figures=pairs,
    )


ABOUT_SETTING = ("model", "card", "engine", "version", "workload")
