"""A finding is always right; what is not looked at fits."""

from __future__ import annotations

from typing import Any

import pytest

from tidegate.policy.output.schema import MOST_STEPS, misfit

PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": ["integer", "null"]}, "kind": {"enum": ["a", 1, None]}},
    "required": ["name"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("value", "schema", "why"),
    [
        ({"name": "x", "age": 3, "kind": "a"}, PERSON, ""),
        ({"name": "x", "age": None, "kind": None}, PERSON, ""),
        ({"age": 3}, PERSON, "the value has no 'name'"),
        ({"name": 3}, PERSON, "the value.name is not of type string"),
        ({"name": "x", "age": 1.5}, PERSON, "the value.age is not of type integer or null"),
        ({"name": "x", "kind": True}, PERSON, "none of the values"),
        ({"name": "x", "other": 1}, PERSON, "does not know"),
        ([], PERSON, "not of type object"),
        ([{"name": "x"}, {}], {"type": "array", "items": PERSON}, "the value[1] has no 'name'"),
        (2.0, {"type": "integer"}, ""),
        (True, {"type": "integer"}, "integer"),
        (True, {"type": "number"}, "number"),
        (1, {"type": "number"}, ""),
        (1, {"const": True}, "not the value that the schema gives"),
        (True, {"const": True}, ""),
        ("x", {"type": "something new"}, ""),
        ("x", {"type": 5}, ""),
        ("x", {"type": [5]}, ""),
        ("x", True, ""),
        ({"a": 1}, {"patternProperties": {"a": {}}, "properties": {}, "additionalProperties": False}, ""),
        ({"a": 1}, {"required": "a", "properties": 3}, ""),
        ({"a": 1}, {"required": [3], "properties": {"b": {"type": "string"}}}, ""),
        ([1], {"items": [{"type": "string"}]}, ""),
        ("x", {"anyOf": [{"type": "number"}], "pattern": "(a+)+$", "$ref": "#"}, ""),
    ],
)
def test_values_against_schemas(value: Any, schema: Any, why: str) -> None:
    found = misfit(value, schema)
    assert why in found
    assert bool(found) is bool(why)


def test_a_schema_that_asks_for_much_work_gets_some_of_it() -> None:
    schema = {"items": {"enum": [*range(MOST_STEPS // 2), -1]}}
    assert misfit([-2, -1, -1, -1], schema) == ""
    assert misfit([-2], schema)
