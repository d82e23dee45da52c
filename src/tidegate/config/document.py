"""YAML text as plain values, with the line and column of every key and value.

JSON is a subset, so ``stability.json`` is read by the same code.
"""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from tidegate.config.origin import Kind, Origin, Path
from tidegate.config.problem import Problem

MAX_NODES = 100_000
"""Bounds what aliases may multiply into ("billion laughs")."""
MAX_DEPTH = 40
_TEXT_TAGS = ("tag:yaml.org,2002:str", "tag:yaml.org,2002:timestamp")
_PLAIN_TAGS = tuple(f"tag:yaml.org,2002:{kind}" for kind in ("int", "float", "bool", "null"))


@dataclass(slots=True)
class Document:
    """One file's values and where each stands."""

    values: dict[str, Any] = field(default_factory=dict)
    origins: dict[Path, Origin] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    unset: list[Path] = field(default_factory=list)
    """Texts whose ``${NAME}`` has no value: nothing more can be said about them."""


def read_document(text: str, source: str) -> Document:
    """Parse ``text``; never raises: what is wrong stands in ``problems``."""
    document = Document()
    try:
        root = YAML(typ="safe", pure=True).compose(io.StringIO(text))
    except (YAMLError, ValueError, RecursionError) as error:
        document.problems.append(_unreadable(error, source))
        return document
    if root is None or root.tag == "tag:yaml.org,2002:null":
        return document
    if not isinstance(root, MappingNode):
        place = _place(root, source)
        document.problems.append(
            Problem((), "the file must hold sections (key: value), not a list or a word", place=place)
        )
        return document
    reader = _Reader(document, source)
    try:
        document.values = reader.mapping(root, ())
    except _TooLargeError:
        document.problems.append(Problem((), "too deep or too large (does an alias contain itself?)", place=source))
    return document


def scalar(text: str) -> Any:
    """One value written outside a file (a variable, a flag), read as YAML would read it."""
    document = read_document(f"value: {text}", "")
    return text if document.problems or "value" not in document.values else document.values["value"]


def _place(node: Node, source: str) -> str:
    return f"{source}:{node.start_mark.line + 1}:{node.start_mark.column + 1}"


def _unreadable(error: Exception, source: str) -> Problem:
    if isinstance(error, MarkedYAMLError) and error.problem_mark is not None:
        mark = error.problem_mark
        what = " ".join(str(part) for part in (error.problem, error.context) if part)
        return Problem((), f"not valid YAML: {what}", place=f"{source}:{mark.line + 1}:{mark.column + 1}")
    if isinstance(error, RecursionError):
        return Problem((), "nested too deeply", place=source)
    first_line = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    return Problem((), f"not valid YAML: {first_line}", place=source)


class _TooLargeError(Exception):
    """More nodes or levels than any honest configuration has."""


class _Reader:
    """Walks the node tree once. ``count`` and the depth bound what aliases can cost."""

    def __init__(self, document: Document, source: str) -> None:
        self.document = document
        self.source = source
        self.count = 0
        self.constructor = YAML(typ="safe", pure=True).constructor

    def fail(self, node: Node, path: Path, message: str) -> None:
        self.document.problems.append(Problem(path, message, place=_place(node, self.source)))

    def value(self, node: Node, path: Path) -> Any:
        self.count += 1
        if self.count > MAX_NODES or len(path) > MAX_DEPTH:
            raise _TooLargeError
        if isinstance(node, MappingNode):
            return self.mapping(node, path)
        if isinstance(node, SequenceNode):
            return [self.entry(item, (*path, index)) for index, item in enumerate(node.value)]
        return self.plain(node, path)

    def entry(self, node: Node, path: Path, key: Node | None = None) -> Any:
        key_mark = (key or node).start_mark
        self.document.origins[path] = Origin(
            Kind.FILE,
            self.source,
            node.start_mark.line + 1,
            node.start_mark.column + 1,
            key_mark.line + 1,
            key_mark.column + 1,
        )
        return self.value(node, path)

    def mapping(self, node: MappingNode, path: Path) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for key, child in node.value:
            if not isinstance(key, ScalarNode):
                self.fail(key, path, "a key must be a word, not a list or a mapping")
            elif key.tag == "tag:yaml.org,2002:merge":
                self.fail(key, path, "merge keys (<<) are not supported: write the keys out")
            elif key.value in values:
                self.fail(key, (*path, key.value), "given twice; keep one")
            else:
                values[key.value] = self.entry(child, (*path, key.value), key)
        return values

    def plain(self, node: Node, path: Path) -> Any:
        if node.tag in _PLAIN_TAGS:
            try:
                return self.constructor.construct_object(node)
            except (ValueError, OverflowError, YAMLError):
                return str(node.value)
        if node.tag not in _TEXT_TAGS:
            self.fail(node, path, f"the tag {node.tag} is not supported")
        text = str(node.value)
        if any(0xD800 <= ord(letter) <= 0xDFFF for letter in text):
            self.fail(node, path, "holds characters that are not valid Unicode")
            return ""
        return text
