from __future__ import annotations

import pytest

from tidegate.config.document import read_document, scalar


def problems(text: str) -> list[str]:
    return [each.render(each.place) for each in read_document(text, "t.yaml").problems]


def test_values_and_keys_have_their_places() -> None:
    document = read_document("server:\n  port: 80\nlist:\n  - a: 1\n", "t.yaml")
    assert document.values == {"server": {"port": 80}, "list": [{"a": 1}]}
    port = document.origins["server", "port"]
    assert (port.place(), port.place(of_key=True)) == ("t.yaml:2:9", "t.yaml:2:3")
    assert document.origins["list", 0].place() == "t.yaml:4:5"
    assert document.origins["list", 0, "a"].place() == "t.yaml:4:8"


def test_json_is_read_too() -> None:
    document = read_document('{"a": {"b": [1, true, null, "x"]}}', "t.json")
    assert document.values == {"a": {"b": [1, True, None, "x"]}}
    assert document.origins["a", "b", 3].place() == "t.json:1:29"


@pytest.mark.parametrize(
    ("text", "value"),
    [("1", 1), ("1.5", 1.5), ("true", True), ("yes", "yes"), ("null", None), ("2024-01-01", "2024-01-01"), ("''", "")],
)
def test_scalars_are_those_of_yaml_1_2_and_dates_stay_text(text: str, value: object) -> None:
    assert scalar(text) == value


def test_text_that_is_no_yaml_is_itself() -> None:
    assert scalar("a: b: c") == "a: b: c"
    assert scalar("[") == "["


@pytest.mark.parametrize("text", ["", "# only a comment\n", "---\n"])
def test_nothing_is_an_empty_document(text: str) -> None:
    document = read_document(text, "t.yaml")
    assert (document.values, document.problems) == ({}, [])


@pytest.mark.parametrize("text", ["- a\n- b\n", "just words", "3"])
def test_a_file_without_sections_is_a_problem(text: str) -> None:
    assert problems(text) == ["t.yaml:1:1: the file must hold sections (key: value), not a list or a word"]


def test_broken_yaml_is_told_with_its_place() -> None:
    (problem,) = problems("a: [1, 2\nb: 3\n")
    assert problem.startswith("t.yaml:2:")
    assert "not valid YAML" in problem
    (control,) = problems("a: \x00")
    assert control.startswith("t.yaml: not valid YAML: ")


def test_a_second_document_is_a_problem() -> None:
    (problem,) = problems("a: 1\n---\nb: 2\n")
    assert problem.startswith("t.yaml:2:1: not valid YAML")


def test_every_key_that_is_given_twice_is_told() -> None:
    assert problems("a: 1\nb: 2\na: 3\nb: 4\n") == [
        "t.yaml:3:1: a: given twice; keep one",
        "t.yaml:4:1: b: given twice; keep one",
    ]


def test_keys_must_be_words_and_merge_keys_are_refused() -> None:
    assert problems("? [1]\n: 2\n<<: {a: 1}\n") == [
        "t.yaml:1:3: a key must be a word, not a list or a mapping",
        "t.yaml:3:1: merge keys (<<) are not supported: write the keys out",
    ]


def test_tags_and_broken_unicode_are_refused() -> None:
    assert problems("a: !python/object:x y\n") == ["t.yaml:1:4: a: the tag !python/object:x is not supported"]
    assert problems('a: "\\ud800"\n') == ["t.yaml:1:4: a: holds characters that are not valid Unicode"]


def test_an_alias_stands_for_its_value() -> None:
    assert read_document("a: &x {p: 1}\nb: *x\n", "t.yaml").values == {"a": {"p": 1}, "b": {"p": 1}}


def test_aliases_cannot_grow_without_bound() -> None:
    assert problems("a: &a [*a]\n") == ["t.yaml: too deep or too large (does an alias contain itself?)"]
    laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 9)
    )
    assert problems(laughs) == ["t.yaml: too deep or too large (does an alias contain itself?)"]


def test_deep_nesting_is_a_problem() -> None:
    assert problems(f"a: {'[' * 60}{']' * 60}") == ["t.yaml: too deep or too large (does an alias contain itself?)"]
    (deeper,) = problems(f"a: {'[' * 700}")
    assert deeper == "t.yaml: nested too deeply"


def test_a_number_too_odd_to_read_stays_text() -> None:
    assert scalar("9" * 5000) == "9" * 5000
