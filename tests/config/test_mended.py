from __future__ import annotations

from tidegate.config.mended import Mended


def test_places_are_told_as_they_stood_before_anything_was_taken_out() -> None:
    mended = Mended({"a": [{"x": 0}, {"x": 1}, {"x": 2}, {"x": 3}]})
    assert mended.take_out([("a", 1, "x"), ("a", 2)]) == {("a", 1, "x"), ("a", 2)}
    assert mended.values == {"a": [{"x": 0}, {}, {"x": 3}]}
    assert mended.original(("a", 2, "x")) == ("a", 3, "x")
    assert mended.take_out([("a", 1, "x")]) == {("a", 1)}
    assert mended.original(("a", 1)) == ("a", 3)


def test_what_went_with_its_surroundings_takes_nothing_else_with_it() -> None:
    mended = Mended({"a": [{"x": 1}, {"x": 2}]})
    assert mended.take_out([("a", 0, "x"), ("a", 0, "missing")]) == {("a", 0)}
    assert mended.values == {"a": [{"x": 2}]}


def test_nothing_left_is_nothing_removed() -> None:
    assert Mended({}).take_out([("a", "b")]) == set()


def test_places_that_are_not_there_are_their_own_originals() -> None:
    assert Mended({"a": 1}).original(("b", 3, "c")) == ("b", 3, "c")
