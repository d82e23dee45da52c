"""Recommended parameters as a change to the configuration that is there: its comments and its form stay."""

from __future__ import annotations

import difflib
import io
from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.nodes import CollectionNode, MappingNode, Node

from tidegate.config.document import read_document
from tidegate.errors import ConfigError


def config_diff(text: str, params: Mapping[str, Any], source: str = "tidegate.yaml") -> str:
    """Unified diff from ``text`` to the same with ``params``, for ``patch``; empty: it has them already."""
    after = with_params(text, params, source)
    lines = difflib.unified_diff(
        text.splitlines(keepends=True), after.splitlines(keepends=True), f"a/{source}", f"b/{source}"
    )
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def with_params(text: str, params: Mapping[str, Any], source: str = "tidegate.yaml") -> str:
    """``text`` with each value put where the old one stands, or behind the last line of its section.

    Raises ConfigError where ``text`` is no configuration, or a place in it cannot be changed so.
    """
    document = read_document(text, source)
    if document.problems:
        raise ConfigError([problem.render(source) for problem in document.problems])
    after = text
    for path, value in _leaves(params):
        after = _put(after, path, value)
        if read_document(after, source).problems:
            break
    found = read_document(after, source)
    if found.problems or found.values != merged(document.values, params):
        raise ConfigError([f"{source}: its form (anchors, aliases?) hides where to write: set it by hand"])
    return after


def merged(values: Mapping[str, Any], params: Mapping[str, Any]) -> dict[str, Any]:
    """Sections key by key, anything else whole."""
    found = deepcopy(dict(values))
    for key, value in params.items():
        old = found.get(key)
        found[key] = merged(old if isinstance(old, dict) else {}, value) if isinstance(value, Mapping) else value
    return found


def _leaves(params: Mapping[str, Any], before: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], Any]]:
    found: list[tuple[tuple[str, ...], Any]] = []
    for key, value in params.items():
        path = (*before, key)
        found += _leaves(value, path) if isinstance(value, Mapping) else [(path, value)]
    return found


def _put(text: str, path: tuple[str, ...], value: Any) -> str:
    root = YAML(typ="safe", pure=True).compose(io.StringIO(text))
    if not isinstance(root, MappingNode):
        return text + ("" if not text or text.endswith("\n") else "\n") + _lines(path, value, 0)
    return _put_in(text, root, path, value)


def _put_in(text: str, section: MappingNode, path: tuple[str, ...], value: Any) -> str:
    name, child = _child(section, path[0])
    rest = path[1:]
    if name is None or child is None:
        return _insert(text, section, path, value)
    if child.start_mark.index == child.end_mark.index:
        at = text.index(":", name.end_mark.index) + 1
        return f"{text[:at]} {_in_place(rest, value)}{text[at:]}"
    if rest and isinstance(child, MappingNode):
        return _put_in(text, child, rest, value)
    return _replace(text, child, rest, value)


def _child(section: MappingNode, key: str) -> tuple[Node, Node] | tuple[None, None]:
    return next(((name, child) for name, child in section.value if name.value == key), (None, None))


def _in_place(rest: tuple[str, ...], value: Any) -> str:
    return "{" + _nested(rest, value) + "}" if rest else _flow(value)


def _replace(text: str, old: Node, rest: tuple[str, ...], value: Any) -> str:
    """What stands there goes, up to its last character; comments before and behind it stay."""
    start, end = old.start_mark.index, old.end_mark.index
    if isinstance(old, CollectionNode) and not old.flow_style:
        end = _index_of_line(text, _end_line(old))
    end = max(start, len(text[:end].rstrip()))
    head = text[:start].rstrip()
    # A value that stood below its key moves up to it, where no comment is in the way.
    before = f"{head} " if head.endswith(":") else text[:start]
    return before + _in_place(rest, value) + text[end:]


def _index_of_line(text: str, number: int) -> int:
    return sum(map(len, text.splitlines(keepends=True)[:number]))


def _insert(text: str, section: MappingNode, path: tuple[str, ...], value: Any) -> str:
    if section.flow_style:
        at = section.end_mark.index - 1
        comma = ", " if section.value else ""
        return text[:at].rstrip() + f"{comma}{_nested(path, value)}" + text[at:]
    indent = section.value[0][0].start_mark.column
    lines = text.splitlines(keepends=True)
    at = _end_line(section)
    if at == len(lines) and lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    lines.insert(at, _lines(path, value, indent))
    return "".join(lines)


def _end_line(node: Node) -> int:
    """The line behind the last one of ``node``, comments behind it left out."""
    if not isinstance(node, CollectionNode) or node.flow_style or not node.value:
        mark = node.end_mark
        return int(mark.line if mark.column == 0 and mark.line > node.start_mark.line else mark.line + 1)
    last = node.value[-1]
    return _end_line(last[1] if isinstance(node, MappingNode) else last)


def _lines(path: tuple[str, ...], value: Any, indent: int) -> str:
    """A section under a section, in the block style."""
    heads = [f"{' ' * (indent + 2 * depth)}{_flow(key)}:" for depth, key in enumerate(path)]
    return "\n".join(heads) + f" {_flow(value)}\n"


def _nested(path: tuple[str, ...], value: Any) -> str:
    head, *rest = path
    return f"{_flow(head)}: " + ("{" + _nested(tuple(rest), value) + "}" if rest else _flow(value))


def _flow(value: Any) -> str:
    """On one line."""
    yaml = YAML(typ="safe", pure=True)
    yaml.default_flow_style, yaml.width = True, 1_000_000
    out = io.StringIO()
    yaml.dump(value, out)
    return out.getvalue().removesuffix("...\n").strip()
