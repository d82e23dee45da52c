"""Values that an operator sets while the service runs: the strongest layer, and gone at the next start.

The latest word counts. A value set here holds over reloads until it is taken back, or until what it covers is changed
in the file: then the file has it, and the reload says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tidegate.config.flags import Overrides, path_from
from tidegate.config.origin import Path
from tidegate.config.reload import is_bound_at_start
from tidegate.config.section import plain
from tidegate.config.settings import Settings


@dataclass(frozen=True, slots=True)
class LiveValue:
    value: Any
    covered: Any
    """What the other layers said there when it was set."""


class LiveLayer:
    """Immutable: a change that turns out to be wrong is simply not kept."""

    def __init__(self, values: Mapping[Path, LiveValue] | None = None) -> None:
        self._values = dict(values or {})

    def overrides(self) -> Overrides:
        """As ``load`` takes them."""
        return {path: each.value for path, each in self._values.items()}

    def needing_restart(self) -> list[Path]:
        """What is set in vain: a running service does not look there again."""
        return [path for path in self._values if is_bound_at_start(path)]

    def patched(self, patch: Mapping[str, Any], others: Settings) -> LiveLayer:
        """With ``patch`` laid over it; None takes a value back. ``others``: what the other layers give.

        A patch is a part of the configuration as the YAML has it; a key with a dot or an index at its top is a path
        (``tail.timeouts.multiplier``). Mappings are merged, lists are replaced whole.
        """
        values, known = dict(self._values), plain(others)
        for path, value in _leaves_of(patch):
            for inside in [each for each in values if each[: len(path)] == path]:
                del values[inside]
            if value is not None:
                values[path] = LiveValue(value, _at(known, path))
        return LiveLayer(values)

    def without_overtaken(self, others: Settings) -> tuple[LiveLayer, list[Path]]:
        """Without the values whose place has changed in the other layers, and which those were."""
        known = plain(others)
        overtaken = [path for path, each in self._values.items() if _at(known, path) != each.covered]
        kept = {path: each for path, each in self._values.items() if path not in overtaken}
        return LiveLayer(kept), overtaken


def _leaves_of(patch: Mapping[str, Any]) -> Iterator[tuple[Path, Any]]:
    for key, value in patch.items():
        path = path_from(key) if "." in key or "[" in key else (key,)
        yield from _below(path, value)


def _below(path: Path, value: Any) -> Iterator[tuple[Path, Any]]:
    if isinstance(value, dict) and value:
        for key, each in value.items():
            yield from _below((*path, key), each)
    else:
        yield path, value


def _at(found: Any, path: Path) -> Any:
    for part in path:
        if isinstance(found, dict):
            found = found.get(part)
        elif isinstance(found, list) and isinstance(part, int) and part < len(found):
            found = found[part]
        else:
            return None
    return found
