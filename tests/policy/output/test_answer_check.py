"""What is said of an answer as a whole."""

from __future__ import annotations

import pytest

from tidegate.policy.output.answer_check import MOST_CHOICES, AnswerCheck, Expected
from tidegate.policy.output.output_config import OutputConfig
from tidegate.policy.output.problem import Finding, Problem

USUAL = Expected(config=OutputConfig())


def ended(check: AnswerCheck, reason: str | None = "stop", *, is_done: bool = True, index: int = 0) -> Finding | None:
    check.choice(index).reason = reason
    return check.end(is_done=is_done)


def problem_of(text: str, reason: str | None = "stop", expected: Expected = USUAL) -> Problem | None:
    check = AnswerCheck(expected)
    check.text(0, text)
    found = ended(check, reason)
    return None if found is None else found.problem


@pytest.mark.parametrize(
    ("text", "reason", "problem"),
    [
        ("hello", "stop", None),
        ("hello", None, None),
        ("", "stop", Problem.EMPTY),
        ("  \n", "stop", Problem.EMPTY),
        ("", None, Problem.EMPTY),
        ("", "length", Problem.TRUNCATED),
        ("hello", "length", Problem.TRUNCATED),
        ("", "content_filter", None),
        ("no, " * 600, "length", Problem.REPETITIVE),
    ],
)
def test_endings(text: str, reason: str | None, problem: Problem | None) -> None:
    assert problem_of(text, reason) is problem


def test_an_answer_at_its_bound_is_a_note_only_unless_its_json_broke() -> None:
    check = AnswerCheck(USUAL)
    check.text(0, "and so")
    found = ended(check, "length")
    assert found is not None
    assert found.is_bound
    check = AnswerCheck(Expected(config=OutputConfig(), is_json=True))
    check.text(0, '{"a":')
    found = ended(check, "length")
    assert found is not None
    assert (found.problem, found.is_bound) == (Problem.TRUNCATED, False)


def test_a_tool_call_or_a_refusal_is_an_answer() -> None:
    check = AnswerCheck(USUAL)
    check.choice(0).has_other = True
    assert ended(check, "tool_calls") is None


def test_where_nothing_may_be_right_nothing_is_no_problem() -> None:
    assert problem_of("", expected=Expected(config=OutputConfig(), may_be_empty=True)) is None
    assert AnswerCheck(Expected(config=OutputConfig(), may_be_empty=True)).end(is_done=True) is None


def test_an_answer_without_choices_is_empty() -> None:
    found = AnswerCheck(USUAL).end(is_done=True)
    assert found is not None
    assert found.problem is Problem.EMPTY


def test_a_stream_that_does_not_say_that_it_ends_is_truncated() -> None:
    check = AnswerCheck(USUAL)
    check.text(0, "hello")
    found = check.end(is_done=False)
    assert found is not None
    assert found.problem is Problem.TRUNCATED
    check = AnswerCheck(USUAL)
    check.text(0, "hello")
    assert ended(check, "stop", is_done=False) is None


def test_every_choice_is_judged_and_of_many_only_whether_they_are_empty() -> None:
    check = AnswerCheck(USUAL)
    for index in range(MOST_CHOICES + 2):
        check.text(index, "fine")
    check.text(MOST_CHOICES, "no, " * 600)
    assert not check.finding
    check.text(MOST_CHOICES - 1, "no, " * 600)
    check.text(0, "more")
    check.unreadable()
    found = check.finding
    assert found is not None
    assert found.problem is Problem.REPETITIVE
    check = AnswerCheck(USUAL)
    for index in range(MOST_CHOICES + 1):
        check.text(index, "fine" if index < MOST_CHOICES else " ")
    assert ended(check) is not None


def test_what_is_no_json_is_garbled() -> None:
    check = AnswerCheck(USUAL)
    check.unreadable()
    found = check.end(is_done=True)
    assert found is not None
    assert found.problem is Problem.GARBLED
