"""JSON that was asked for, and how much is kept of a text."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.policy.output.test_json_progress import VALUES, cut
from tidegate.policy.output.output_config import OutputConfig, OutputOverride
from tidegate.policy.output.problem import Action, Problem
from tidegate.policy.output.text_check import MOST_KEPT, TextCheck

CONFIG = OutputConfig()
MANY_DIGITS = "".join(str(n) for n in range(1000, 2500))
"""More than Python reads as a whole number."""


def checked(*pieces: str, schema: Any = None) -> tuple[Problem | None, str]:
    check = TextCheck(CONFIG, is_json=True, schema=schema)
    for piece in pieces:
        check.feed(piece)
    found = check.end()
    return (None, "") if found is None else (found.problem, found.evidence)


@settings(max_examples=60)
@given(VALUES, st.lists(st.integers(0, 300)))
def test_valid_json_split_anywhere_is_no_format_error(value: Any, places: list[int]) -> None:
    problem, why = checked(*cut(json.dumps(value), places))
    # What stands in the strings may be garbled, or a loop; JSON it is.
    assert problem not in (Problem.FORMAT, Problem.TRUNCATED), why


@settings(max_examples=60)
@given(
    st.lists(VALUES, min_size=1, max_size=3) | st.dictionaries(st.text("abc"), VALUES, min_size=1, max_size=3),
    st.data(),
)
def test_valid_json_cut_short_is_truncated(value: Any, data: st.DataObject) -> None:
    text = json.dumps(value)
    cut_short = text[: data.draw(st.integers(1, len(text) - 1))]
    problem, _ = checked(*cut(cut_short, data.draw(st.lists(st.integers(0, 300)))))
    assert problem in (Problem.TRUNCATED, Problem.GARBLED, Problem.REPETITIVE)
    if len(cut_short) < 100 and cut_short.isprintable() and cut_short.isascii():
        assert problem is Problem.TRUNCATED


def test_what_is_no_json_is_found_at_once_and_said() -> None:
    check = TextCheck(CONFIG, is_json=True)
    check.feed("Sure, here is")
    assert check.finding is not None
    assert check.finding.problem is Problem.FORMAT
    first = check.finding
    check.feed(" more")
    assert check.end() is first


@pytest.mark.parametrize(
    ("text", "problem"),
    [('{"a":1}', None), ('{"a":"1"}', Problem.FORMAT), ("{}", Problem.FORMAT), ('{"a":' + MANY_DIGITS + "}", None)],
)
def test_a_schema_is_held_against_complete_json(text: str, problem: Problem | None) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    assert checked(*text, schema=schema)[0] is problem


def test_of_long_json_only_the_form_is_checked() -> None:
    text = json.dumps([f"{n} and more" for n in range(10_000)])
    assert len(text) > MOST_KEPT
    assert checked(text, schema={"type": "object"})[0] is None
    assert checked(text[:-1], schema={"type": "object"})[0] is Problem.TRUNCATED


def test_blank_text_is_not_json_yet_and_no_problem_of_the_text() -> None:
    check = TextCheck(CONFIG, is_json=True)
    check.feed("")
    check.feed(" \n")
    assert check.is_blank
    assert check.end() is None


def test_settings_name_an_action_for_every_problem() -> None:
    config = OutputConfig(
        empty=Action.STOP,
        truncated=Action.DEGRADE,
        garbled=Action.MARK,
        format=Action.RETRY_ONCE,
        repetitive=Action.STOP,
    )
    actions = [config.action(problem) for problem in Problem]
    assert actions == [Action.STOP, Action.DEGRADE, Action.MARK, Action.RETRY_ONCE, Action.STOP]


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"loop_characters": 10}, "loop_characters"),
        ({"loop_repeats": 2}, "loop_repeats"),
        ({"garbled_share": 0.0}, "garbled_share"),
        ({"garbled_share": 1.5}, "garbled_share"),
    ],
)
def test_settings_that_make_no_sense_are_refused(changes: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        OutputConfig(**changes)


def test_a_model_differs_only_in_what_it_names() -> None:
    assert OutputOverride().over(CONFIG) is CONFIG
    changed = OutputOverride(repetitive=Action.STOP, enabled=False).over(CONFIG)
    assert (changed.repetitive, changed.enabled, changed.empty) == (Action.STOP, False, CONFIG.empty)
