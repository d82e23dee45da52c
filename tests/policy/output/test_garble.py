"""Text that no one can read is found; text about such text is not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.policy.output.garble import Garble, bad_characters
from tidegate.policy.output.output_config import OutputConfig
from tidegate.policy.output.problem import Problem
from tidegate.policy.output.text_check import TextCheck

PROSE = "The engines answer in the order in which they were asked, unless one of them is slow. " * 10
MOJIBAKE = "Größe, Übung, naïve Café, señor, “quoted” – and so on. ".encode().decode("latin-1")


def problem_of(text: str, share: float = 0.1) -> Problem | None:
    check = TextCheck(OutputConfig(garbled_share=share), is_json=False)
    check.feed(text)
    found = check.end()
    return None if found is None else found.problem


@pytest.mark.parametrize(
    ("text", "bad"),
    [
        ("plain\ttext\r\n", 0),
        ("\x00\x1b[0m\x7f", 3),
        ("é è ü ß 漢字 😀 \u2028", 0),
        ("a\ufffdb\ufffd", 2),
        ("\ud800 alone", 1),
        ("Ã¼ and â€œ", 2),
        ("Ã alone, â alone", 0),
        ("", 0),
    ],
)
def test_bad_characters_are_counted(text: str, bad: int) -> None:
    assert bad_characters(text) == bad


@pytest.mark.parametrize(
    "text",
    [
        "\ufffd" * 5,
        PROSE + "\ufffd\ufffdx" * 60,
        "\x00\x01\x02 abc",
        PROSE + MOJIBAKE * 20,
        PROSE + "".join(chr(1 + n % 8) + "ab" for n in range(300)),
    ],
)
def test_what_no_one_can_read_is_garbled(text: str) -> None:
    assert problem_of(text) is Problem.GARBLED


@pytest.mark.parametrize(
    "text",
    [
        PROSE,
        "Größe, Übung, naïve Café, señor, “quoted” – and so on. 漢字かな交じり文 Ελληνικά العربية עברית हिन्दी 😀👩‍👩‍👧",
        "Two halves: \ufffd\ufffd",
        "U+FFFD looks so: \ufffd, and mojibake so: Ã¼ instead of ü. " + PROSE,
        "\x1b[31mred\x1b[0m and \x1b[32mgreen\x1b[0m in a terminal. " + PROSE,
    ],
)
def test_what_can_be_read_is_not(text: str) -> None:
    assert problem_of(text) is None


def test_a_long_answer_does_not_hide_a_broken_end() -> None:
    assert problem_of("".join(f"Step {n}: {PROSE[:80]}" for n in range(200)) + "x\ufffd" * 600) is Problem.GARBLED


def test_the_share_is_kept_and_the_evidence_says_it() -> None:
    text = "abcd\ufffd" * 100
    assert problem_of(text, share=0.3) is None
    garble = Garble(0.1)
    assert garble.check(text)
    assert garble.evidence == "100 of 500 characters are no text"


@given(st.text(min_size=1), st.lists(st.integers(1, 50)))
def test_how_the_text_is_cut_makes_no_difference(text: str, sizes: list[int]) -> None:
    check, at = TextCheck(OutputConfig(), is_json=False), 0
    for size in sizes:
        check.feed(text[at : at + size])
        at += size
    check.feed(text[at:])
    found = check.end()
    assert (None if found is None else found.problem) is problem_of(text)
