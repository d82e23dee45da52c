"""What is added to the copy that mypyc compiles leaves the source what it is."""

from __future__ import annotations

import ast
import copy
import dataclasses
import inspect
import sys
import typing
from collections.abc import Iterator
from types import ModuleType

import pytest

from compiled.prepared import PLAIN, prepared
from compiled.rooms import compiled_files
from compiled.tree import SOURCE

MODULE = '''
from __future__ import annotations
from dataclasses import dataclass, field

MOST = 3
_ONE, _TWO = MOST, "2"
FIRST, SECOND = range(2)
_TABLE = {
    1: 2,
}
Alias = int | None

@dataclass(frozen=True, slots=True)
class Pair:
    first: tuple[int, ...]
    second: float | None = None

@dataclass(slots=True)
class Value:
    size: int
    name: str = "none"
    """Of nobody."""

    def doubled(self) -> int:
        return 2 * self.size

@dataclass(slots=True)
class Bag:
    things: list[int] = field(default_factory=list)

class Plain:
    """No dataclass."""
    size: int
'''


@pytest.fixture
def module() -> Iterator[ModuleType]:
    module = ModuleType("prepared_module")
    sys.modules[module.__name__] = module
    exec(prepared(MODULE), module.__dict__)
    yield module
    del sys.modules[module.__name__]


def test_fields_have_their_types_in_full(module: ModuleType) -> None:
    assert typing.get_type_hints(module.Pair) == {"first": tuple[int, ...], "second": float | None}


def test_a_frozen_one_can_be_copied(module: ModuleType) -> None:
    assert copy.deepcopy(module.Pair((1, 2))) == module.Pair((1, 2))


def test_a_constructor_of_its_own_takes_what_the_generated_one_took(module: ModuleType) -> None:
    assert str(inspect.signature(module.Value)) == "(size: 'int', name: 'str' = 'none') -> 'None'"
    value = module.Value(3)
    assert (value.size, value.name, value.doubled()) == (3, "none", 6)
    assert dataclasses.replace(value, size=4) == module.Value(4, "none")
    assert repr(value) == "Value(size=3, name='none')"


def test_what_is_made_anew_for_each_value_still_is(module: ModuleType) -> None:
    assert module.Bag().things is not module.Bag().things


def test_constants_are_final_and_aliases_are_not() -> None:
    lines = prepared(MODULE).splitlines()
    assert {
        "MOST: Final = 3",
        "_ONE: Final = MOST; _TWO: Final = '2'",
        "_TABLE: Final = {",
        "FIRST, SECOND = range(2)",
        "Alias = int | None",
    } < set(lines)
    assert "from __future__ import annotations; from typing import Final" in lines


def test_no_line_moves() -> None:
    lines, before = prepared(MODULE).splitlines(), MODULE.splitlines()
    assert lines.index("    def doubled(self) -> int:") == before.index("    def doubled(self) -> int:")
    assert lines.index("class Bag:") == before.index("class Bag:")


def test_every_compiled_file_is_python_afterwards_and_keeps_its_places() -> None:
    constructors = 0
    for file in compiled_files(SOURCE):
        source = file.read_text()
        after = ast.parse(prepared(source))
        places = {node.name: node.lineno for node in after.body if isinstance(node, ast.ClassDef | ast.FunctionDef)}
        for node in ast.parse(source).body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef):
                assert places[node.name] == node.lineno
        constructors += prepared(source).count("init=False")
        assert PLAIN not in prepared(source) or "default_factory" in source
    assert constructors > 8
