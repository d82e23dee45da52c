"""What the validator found, in words that say what would be right."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pydantic_core import ErrorDetails

from tidegate.config.origin import Path
from tidegate.config.parameters import Shape
from tidegate.config.problem import Problem, suggestion

_MESSAGES: Mapping[str, str] = {
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "finite_number": "must be a finite number",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "string_type": "must be text (put quotes around it)",
    "string_too_short": "must not be empty",
    "string_too_long": "must be at most {max_length} characters",
    "string_pattern_mismatch": "must match {pattern}",
    "tuple_type": "must be a list",
    "list_type": "must be a list",
    "dict_type": "must be a mapping (key: value)",
    "model_type": "must be a section (key: value)",
    "greater_than": "must be more than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be less than {lt}",
    "less_than_equal": "must be at most {le}",
    "literal_error": "must be {expected}",
    "enum": "must be {expected}",
    "too_long": "must hold at most {max_length}",
    "too_short": "must hold at least {min_length}",
}


_CONFIG_REPR = re.compile(r": \w+Config\((.*)\)$", re.DOTALL)
"""The policies' own checks end with their configuration as Python writes it."""


def problem_of(error: ErrorDetails, root: Shape) -> Problem:
    """One validation error as a finished sentence."""
    path: Path = tuple(error["loc"])
    parent = root.at(path[:-1])
    path = root.written(path)
    kind, context, given = error["type"], error.get("ctx", {}), error.get("input")
    # Where a key itself is wrong, its place ends so; an unknown key may really be called that.
    if path[-1:] == ("[key]",) and kind != "extra_forbidden":
        return replace(problem_of({**error, "loc": path[:-1]}, root), at_key=True)
    if kind == "extra_forbidden":
        known = parent.keys() if parent is not None else ()
        return Problem(path, f"unknown key{suggestion(str(path[-1]), known) or _choices(known)}", at_key=True)
    if kind == "missing":
        return Problem(path, "is required")
    if kind == "value_error":
        return Problem(path, _CONFIG_REPR.sub(r" (here: \1)", str(context.get("error", error["msg"]))))
    if kind == "engine_kind":
        named = given.get("kind") if isinstance(given, dict) else given
        near = suggestion(named, _quoted(error["msg"])) if isinstance(named, str) else ""
        return Problem(path, f"{error['msg']}, got {_shown(named)}{near}")
    message = _MESSAGES.get(kind)
    if message is None:
        return Problem(path, f"{error['msg']}, got {_shown(given)}")
    hint = suggestion(given, _quoted(context.get("expected", ""))) if isinstance(given, str) else ""
    return Problem(path, f"{message.format(**context)}, got {_shown(given)}{hint}")


def _choices(known: tuple[str, ...]) -> str:
    return f" (known: {', '.join(known)})" if 0 < len(known) <= 12 else ""


def _quoted(expected: str) -> list[str]:
    """The choices in pydantic's ``'a', 'b' or 'c'``."""
    return expected.split("'")[1::2]


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, (list, tuple)):
        return "a list"
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
