"""Loops are found; text that only looks like one is not."""

from __future__ import annotations

import base64
import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.policy.output.output_config import OutputConfig
from tidegate.policy.output.problem import Problem
from tidegate.policy.output.text_check import TextCheck

PROSE = (
    "The gateway stands in front of the engines and decides who goes first. When a burst comes, what does not fit "
    "waits, and what cannot be served in time is refused at once, so that its client can go elsewhere. "
)
MARKDOWN_TABLE = "| name | value | unit |\n" + ("|" + "-" * 30) * 3 + "|\n"
MARKDOWN_TABLE += "".join(f"| row {n} | {n * 37 % 101} | ms |\n" for n in range(120))
CODE = "".join(
    f"{' ' * 4 * (n % 9)}if value_{n} is None:\n{' ' * 4 * (n % 9 + 1)}raise ValueError('value_{n} is missing')\n"
    for n in range(80)
)
LIKE_LINES = "".join(f"2026-11-30 12:00:{n % 60:02d} INFO request {n} answered with status 200\n" for n in range(200))
RULES = ("Part\n" + "=" * 120 + "\n" + PROSE + "\n" + "-" * 200 + "\n") * 3
BASE64 = base64.b64encode(random.Random(5).randbytes(6000) + bytes(300)).decode()
MATRIX = json.dumps([[int(i == j) for j in range(20)] for i in range(20)])
DEEP_JSON = json.dumps(
    [{"id": n, "name": f"item {n}", "tags": ["a", "b"], "price": n * 1.5} for n in range(100)], indent=4
)
CHINESE = "".join(f"第{n}条、请求在队列中等待、直到有空闲的槽位。" for n in range(150))
CHORUS = ("La la la, la la la, we sing it all again.\n" * 4 + PROSE) * 3
CHECKLIST = "".join(f"- [ ] step {n}\n" for n in range(200))

GOOD = {
    "prose": PROSE * 3,
    "table": MARKDOWN_TABLE,
    "code": CODE,
    "log": LIKE_LINES,
    "rules": RULES,
    "base64": BASE64,
    "matrix": MATRIX,
    "json": DEEP_JSON,
    "chinese": CHINESE,
    "chorus": CHORUS,
    "checklist": CHECKLIST,
    "indented": "\n".join(" " * 60 + f"x{n} = {n}" for n in range(60)),
    "padded": "\n".join(f"{n:<120}|" for n in range(40)),
    "rule of 900": "=" * 900 + "\n" + PROSE,
    "poem": "\n\n".join(
        f"{n} bottles of beer on the wall, {n} bottles of beer.\nTake one down." for n in range(99, 0, -1)
    ),
}

LOOPS = {
    "NaN": "!" * 3000,
    "token": " the" * 800,
    "sentence": "I am sorry, I cannot help with that. " * 60,
    "paragraph": (PROSE * 3) * 8,
    "thousand": "".join(chr(97 + n % 26) + str(n) for n in range(240))[:990] * 10,
    "lines": "    NULL,\n" * 300,
    "table rule inside": ("| a | b |\n|" + "-" * 60 + "|\n| 1 | 2 |\n") * 60,
    "chinese": "我不知道。" * 500,
    "spaces": " " * 2000,
    "blank lines": "\n" * 2000,
    "mixed blanks": "".join(random.Random(3).choice(" \n\t") for _ in range(2000)),
    "rows": "0, 0, 0, 0, 1, 0,\n" * 200,
}


def problem_of(*pieces: str, config: OutputConfig = OutputConfig()) -> Problem | None:  # noqa: B008 - a frozen value
    check = TextCheck(config, is_json=False)
    for piece in pieces:
        check.feed(piece)
    found = check.end()
    return None if found is None else found.problem


@pytest.mark.parametrize("name", GOOD)
def test_good_text_is_no_loop(name: str) -> None:
    assert problem_of(GOOD[name]) is None
    assert problem_of(PROSE + GOOD[name]) is None


@pytest.mark.parametrize("name", LOOPS)
def test_a_loop_is_found_wherever_it_begins(name: str) -> None:
    assert problem_of(LOOPS[name]) is Problem.REPETITIVE
    assert problem_of(PROSE + LOOPS[name]) is Problem.REPETITIVE
    assert problem_of(DEEP_JSON[:777] + LOOPS[name]) is Problem.REPETITIVE


def test_a_loop_is_found_though_the_text_goes_on_after_it() -> None:
    assert problem_of(PROSE + "well, " * 300 + PROSE * 2) is Problem.REPETITIVE


def test_the_finding_says_which_period_and_nothing_of_the_text() -> None:
    check = TextCheck(OutputConfig(), is_json=False)
    check.feed("secret " * 400)
    found = check.end()
    assert found is not None
    assert found.evidence == "a part of 7 characters stands behind itself again and again"
    check = TextCheck(OutputConfig(), is_json=False)
    check.feed("\n " * 600)
    assert check.finding is not None
    assert "white space" in check.finding.evidence


def test_a_loop_is_found_soon_after_it_is_long_enough() -> None:
    check = TextCheck(OutputConfig(), is_json=False)
    check.feed(PROSE)
    characters = 0
    while check.finding is None:
        check.feed(" no,")
        characters += 4
    assert characters <= 1024 + 512


def test_thresholds_are_kept() -> None:
    short = OutputConfig(loop_characters=128, loop_repeats=3)
    assert problem_of("abcdefgh" * 17, config=short) is Problem.REPETITIVE
    assert problem_of("abcdefgh" * 15, config=short) is None
    long = OutputConfig(loop_characters=4000, loop_repeats=6)
    assert problem_of("abcdefgh" * 400, config=long) is None


@given(st.sampled_from([*GOOD, *LOOPS]), st.lists(st.integers(1, 2000), max_size=12), st.integers(0, 700))
def test_how_the_text_is_cut_makes_no_difference(name: str, sizes: list[int], skipped: int) -> None:
    text = ({**GOOD, **LOOPS}[name])[skipped:]
    pieces, at = [], 0
    for size in sizes:
        pieces.append(text[at : at + size])
        at += size
    assert problem_of(*pieces, text[at:]) is problem_of(text)
