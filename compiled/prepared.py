"""What is put into the copy of the source that mypyc compiles.

Of dataclasses it leaves out what others need:

- It keeps ``tuple`` of ``tuple[Rung, ...]`` and nothing of ``float | None``; pydantic and msgspec read values by
  these types.
- It keeps ``dataclass`` from adding what makes a frozen one with slots copyable.
- The constructor stays the one that ``dataclass`` writes, in Python, which costs more than all else about a
  small value. A plain value of the hot path gets one that is compiled.

And it looks a module's constant up by name for each use, unless that is declared ``Final``.

No line moves, so that tracebacks point into the source.
"""

from __future__ import annotations

import ast
import re

FUTURE = "from __future__ import annotations"
CONSTANT = re.compile(r"_?[A-Z][A-Z0-9_]*|_[a-z_]+")
"""Aliases of types are written otherwise."""
PLAIN = "@dataclass(slots=True)"
PLAIN_WITH_OWN_INIT = "@dataclass(slots=True, init=False)"
TYPES = """
vars({name})["__annotations__"].update({types})
"""
STATE = """
setattr({name}, "__getstate__", getattr(__import__("dataclasses"), "_dataclass_getstate"))
setattr({name}, "__setstate__", getattr(__import__("dataclasses"), "_dataclass_setstate"))
"""


def prepared(source: str) -> str:
    """The source of one module, as mypyc gets it."""
    lines = source.splitlines()
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign):
            lines[node.lineno - 1] = final(node, lines[node.lineno - 1])
    if FUTURE in lines:
        lines[lines.index(FUTURE)] += "; from typing import Final"
    end = ""
    for node in ast.parse(source).body:
        if not isinstance(node, ast.ClassDef):
            continue
        decorator = next((each for each in node.decorator_list if "dataclass" in ast.unparse(each)), None)
        if decorator is None:
            continue
        fields = [each for each in node.body if isinstance(each, ast.AnnAssign)]
        types = {ast.unparse(each.target): ast.unparse(each.annotation) for each in fields}
        end += TYPES.format(name=node.name, types=types)
        if "frozen=True" in ast.unparse(decorator):
            end += STATE.format(name=node.name)
        if lines[decorator.lineno - 1] == PLAIN and has_plain_defaults(fields):
            lines[decorator.lineno - 1] = PLAIN_WITH_OWN_INIT
            lines[node.end_lineno or 0 : (node.end_lineno or 0) + 1] = [constructor(node, fields)]
    return "\n".join([*lines, end])


def final(node: ast.Assign, line: str) -> str:
    """The first line of an assignment to a constant, or to several at once, as one that is never made again."""
    target, value = node.targets[0], node.value
    names = target.elts if isinstance(target, ast.Tuple) else [target]
    if not all(isinstance(name, ast.Name) and CONSTANT.fullmatch(name.id) for name in names):
        return line
    if not isinstance(target, ast.Tuple):
        return line.replace(" =", ": Final =", 1)
    if not isinstance(value, ast.Tuple) or node.end_lineno != node.lineno:
        return line
    pairs = zip(names, value.elts, strict=True)
    return "; ".join(f"{ast.unparse(name)}: Final = {ast.unparse(each)}" for name, each in pairs)


def has_plain_defaults(fields: list[ast.AnnAssign]) -> bool:
    """None is made anew for each value, as by ``field(default_factory=...)``."""
    return not any(isinstance(each.value, ast.Call) for each in fields)


def constructor(node: ast.ClassDef, fields: list[ast.AnnAssign]) -> str:
    """In one line, which takes the place of the empty one behind the class."""
    parameters, statements = ["self"], []
    for each in fields:
        name, default = ast.unparse(each.target), "" if each.value is None else f" = {ast.unparse(each.value)}"
        parameters.append(f"{name}: {ast.unparse(each.annotation)}{default}")
        statements.append(f"self.{name} = {name}")
    if any(isinstance(each, ast.FunctionDef) and each.name == "__post_init__" for each in node.body):
        statements.append("self.__post_init__()")
    return f"    def __init__({', '.join(parameters)}) -> None: {'; '.join(statements)}"
