"""Whether JSON fits a JSON Schema, as far as it can be told in a time that the sender of the schema does not choose.

Checked: ``type``, ``enum``, ``const``, ``required``, ``properties``, ``additionalProperties: false``, ``items``.
Everything else counts as fitting, so that a finding is always right and a miss is possible.

Why not a whole validator: the schema comes from a client, and ``pattern`` lets it choose a regular expression that
runs for minutes on the event loop; ``$ref``, ``anyOf`` and the like let it choose how often a part is looked at.
Here every value is looked at once.
"""

from __future__ import annotations

from typing import Any

MOST_STEPS = 20_000
"""Values, and names and choices of the schema beside them, looked at in one answer; the rest counts as fitting."""

_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}


def misfit(value: Any, schema: Any) -> str:
    """What of ``value`` does not fit, in words and by its place; "" when nothing was found."""
    left = [(value, schema, "the value")]
    steps = 0
    while left and steps < MOST_STEPS:
        value, schema, place = left.pop()
        if not isinstance(schema, dict):
            continue
        steps += _steps(schema)
        why = _itself(value, schema, place)
        if why:
            return why
        if isinstance(value, dict):
            why = _members(value, schema, place, left)
            if why:
                return why
        elif isinstance(value, list) and isinstance(schema.get("items"), dict):
            left += [(each, schema["items"], f"{place}[{index}]") for index, each in enumerate(value[:MOST_STEPS])]
    return ""


def _steps(schema: dict[str, Any]) -> int:
    """What looking at one value costs: a client's schema may be long, and meet every part of an array."""
    parts = (schema.get(name) for name in ("enum", "required", "properties"))
    return 1 + sum(len(part) for part in parts if isinstance(part, list | dict))


def _itself(value: Any, schema: dict[str, Any], place: str) -> str:
    types = schema.get("type")
    names = [types] if isinstance(types, str) else types if isinstance(types, list) else []
    if names and not any(_is_of(value, name) for name in names):
        return f"{place} is not of type {' or '.join(map(str, names))}"
    allowed = schema.get("enum")
    if isinstance(allowed, list) and not any(_equal(value, each) for each in allowed):
        return f"{place} is none of the values that the schema allows"
    if "const" in schema and not _equal(value, schema["const"]):
        return f"{place} is not the value that the schema gives"
    return ""


def _members(value: dict[str, Any], schema: dict[str, Any], place: str, left: list[tuple[Any, Any, str]]) -> str:
    required, known = schema.get("required"), schema.get("properties")
    if isinstance(required, list):
        missing = [name for name in required if isinstance(name, str) and name not in value]
        if missing:
            return f"{place} has no {missing[0]!r}"
    if not isinstance(known, dict):
        return ""
    if schema.get("additionalProperties") is False and "patternProperties" not in schema:
        unknown = [name for name in value if name not in known]
        if unknown:
            return f"{place} has a key that the schema does not know"
    left += [(value[name], each, f"{place}.{name}") for name, each in known.items() if name in value]
    return ""


def _is_of(value: Any, name: Any) -> bool:
    """A type that nobody knows fits everything."""
    if name == "integer":
        is_whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
        return is_whole and not isinstance(value, bool)
    if name == "number" and isinstance(value, bool):
        return False
    types = _TYPES.get(name) if isinstance(name, str) else None
    return types is None or isinstance(value, types)


def _equal(value: Any, other: Any) -> bool:
    """As JSON is equal: true is not 1."""
    if isinstance(value, bool) or isinstance(other, bool):
        return value is other
    return bool(value == other)
