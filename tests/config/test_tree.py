from __future__ import annotations

import pytest

from tidegate.config.origin import Kind, Origin
from tidegate.config.tree import Tree, leaves, paths

FLAG = Origin(Kind.FLAG, "--x")


def test_put_makes_what_is_missing_on_the_way() -> None:
    tree = Tree()
    tree.put(("a", "b", 0, "c"), 1, FLAG)
    tree.put(("a", "b", 1), {"c": 2}, FLAG)
    assert tree.values == {"a": {"b": [{"c": 1}, {"c": 2}]}}
    assert tree.origins["a", "b", 1, "c"] is FLAG


@pytest.mark.parametrize("path", [("a", "b"), ("l", 5), ("l", "x"), ("l", "x", "y"), ("a", 0), ("a", 0, "b")])
def test_put_refuses_places_that_cannot_be(path: tuple[str | int, ...]) -> None:
    tree = Tree()
    tree.values = {"a": 1, "l": []}
    with pytest.raises(LookupError):
        tree.put(path, 1, FLAG)


def test_a_replaced_value_forgets_where_the_old_one_came_from() -> None:
    tree = Tree()
    tree.put(("a", "b"), 1, FLAG)
    tree.merge({"a": [1]}, {("a",): Origin(Kind.FILE, "f", 1, 1)})
    assert ("a", "b") not in tree.origins
    assert tree.origins["a",].kind is Kind.FILE


def test_the_layers_own_values_are_not_changed() -> None:
    layer = {"a": {"b": [1]}}
    tree = Tree()
    tree.merge(layer, {})
    tree.put(("a", "b", 0), 2, FLAG)
    assert layer == {"a": {"b": [1]}}


def test_nothing_on_top_of_a_section_leaves_it_as_it_is() -> None:
    tree = Tree()
    tree.values = {"a": {"b": 1}}
    tree.merge({"a": None}, {})
    assert tree.get(("a", "b")) == 1
    assert tree.get(("a", "c")) is None
    assert tree.get(("a", "b", "c")) is None


def test_has_tells_none_from_nothing() -> None:
    tree = Tree()
    tree.values = {"a": None, "l": [1]}
    assert [tree.has(path) for path in [("a",), ("b",), ("l", 0), ("l", 1), ("l", "x"), ("a", "b")]] == [
        True, False, True, False, False, False,
    ]  # fmt: skip


def test_paths_and_leaves_walk_the_whole_tree() -> None:
    value = {"a": [1, {"b": None}], "c": {}, "d": []}
    assert list(paths(value, ())) == [(), ("a",), ("a", 0), ("a", 1), ("a", 1, "b"), ("c",), ("d",)]
    assert dict(leaves(value)) == {("a", 0): 1, ("a", 1, "b"): None, ("c",): {}, ("d",): []}
