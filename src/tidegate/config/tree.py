"""The values of all layers, merged, each with its origin."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from tidegate.config.origin import Origin, Path


class Tree:
    """Plain mappings, lists and scalars. Mappings merge key by key; anything else is replaced whole."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self.origins: dict[Path, Origin] = {}

    def merge(self, values: Mapping[str, Any], origins: Mapping[Path, Origin]) -> None:
        """Lay ``values`` over what is there; ``origins`` holds the place of each of their nodes."""
        self._merge(self.values, values, origins, ())

    def _merge(
        self, into: dict[str, Any], values: Mapping[str, Any], origins: Mapping[Path, Origin], path: Path
    ) -> None:
        for key, value in values.items():
            here = (*path, key)
            known = isinstance(into.get(key), dict)
            if known and value is None:
                continue  # A section whose every line is commented out.
            if known and isinstance(value, dict):
                self._mark(here, origins)
                self._merge(into[key], value, origins, here)
            else:
                self._forget(here)
                into[key] = copied(value)
                for below in paths(value, here):
                    self._mark(below, origins)

    def _mark(self, path: Path, origins: Mapping[Path, Origin]) -> None:
        if path in origins:
            self.origins[path] = origins[path]

    def _forget(self, path: Path) -> None:
        for known in [each for each in self.origins if each[: len(path)] == path]:
            del self.origins[known]

    def put(self, path: Path, value: Any, origin: Origin) -> None:
        """Set one value, making mappings (and one list entry at the end) on the way. Raises LookupError."""
        parent: Any = self.values
        for depth, (part, following) in enumerate(pairwise(path), 1):
            if not self.has(path[:depth]):
                self.origins[path[:depth]] = origin
            parent = _step(parent, part, [] if isinstance(following, int) else {})
        last = path[-1]
        self._forget(path)
        if isinstance(last, int):
            _extend(parent, last)
        elif not isinstance(parent, dict):
            raise LookupError(last)
        parent[last] = copied(value)
        for below in paths(value, path):
            self.origins[below] = origin

    def get(self, path: Path) -> Any:
        """The value at ``path``, or None."""
        found: Any = self.values
        for part in path:
            try:
                found = found[part]
            except (KeyError, IndexError, TypeError):
                return None
        return found

    def has(self, path: Path) -> bool:
        """Whether something stands at ``path``, be it None."""
        parent = self.get(path[:-1])
        if isinstance(parent, list):
            return isinstance(path[-1], int) and path[-1] < len(parent)
        return isinstance(parent, dict) and path[-1] in parent

    def remove(self, path: Path) -> None:
        """Take out the value at ``path``. Raises LookupError when there is none."""
        del self.get(path[:-1])[path[-1]]


def _step(parent: Any, part: str | int, empty: Any) -> Any:
    if isinstance(part, int):
        _extend(parent, part)
    elif not isinstance(parent, dict):
        raise LookupError(part)
    elif parent.get(part) is None:
        parent[part] = empty
    if parent[part] is None:
        parent[part] = empty
    return parent[part]


def _extend(parent: Any, index: int) -> None:
    if not isinstance(parent, list) or index > len(parent):
        raise LookupError(index)
    if index == len(parent):
        parent.append(None)


def copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: copied(each) for key, each in value.items()}
    return [copied(each) for each in value] if isinstance(value, list) else value


def paths(value: Any, path: Path) -> Iterator[Path]:
    """``path`` and every path below it."""
    yield path
    children: Any = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        yield from paths(child, (*path, key))


def leaves(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every scalar (and empty mapping or list) with its path."""
    children: Any = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    if not children or (isinstance(value, list) and not value):
        yield path, value
        return
    for key, child in children:
        yield from leaves(child, (*path, key))
