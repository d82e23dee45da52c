"""A configuration from which faulty values are taken out, so that the rest can be checked as a whole."""

from __future__ import annotations

from typing import Any

from tidegate.config.origin import Path
from tidegate.config.tree import Tree, copied


class Mended:
    """Values that shrink. An entry that leaves a list moves those behind it; ``original`` says where they stood."""

    def __init__(self, values: dict[str, Any]) -> None:
        self._held = Tree()
        self._held.values = copied(values)
        self._numbered = _numbered(values)

    @property
    def values(self) -> dict[str, Any]:
        return self._held.values

    def original(self, path: Path) -> Path:
        """The same place before anything was taken out."""
        found: Path = ()
        node = self._numbered
        for part in path:
            if isinstance(node, list) and isinstance(part, int) and part < len(node):
                position, node = node[part]
                found = (*found, position)
            else:
                node = node.get(part) if isinstance(node, dict) else None
                found = (*found, part)
        return found

    def take_out(self, paths: list[Path]) -> set[Path]:
        """Remove the value at each path, or the nearest thing around it when there is none.

        ``paths`` are in the order of the file. Returns where the removed things stood originally.
        """
        gone: list[Path] = []
        originals: set[Path] = set()
        # From the last to the first, so that an entry that leaves a list moves none still to come.
        for path in reversed(paths):
            if any(path[: len(each)] == each for each in gone):
                continue
            here = self._nearest(path)
            if here:
                originals.add(self.original(here))
                self._held.remove(here)
                _remove(self._numbered, here)
                gone.append(here)
        return originals

    def _nearest(self, path: Path) -> Path:
        while path and not self._held.has(path):
            path = path[:-1]
        return path


def _remove(numbered: Any, path: Path) -> None:
    for part in path[:-1]:
        child = numbered[part]
        numbered = child[1] if isinstance(child, tuple) else child
    del numbered[path[-1]]


def _numbered(value: Any) -> Any:
    """The structure alone; entries of lists carry their first index."""
    if isinstance(value, dict):
        return {key: _numbered(each) for key, each in value.items()}
    return [(index, _numbered(each)) for index, each in enumerate(value)] if isinstance(value, list) else None
