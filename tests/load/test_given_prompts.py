"""Prompts of a file: read, told by line where they are wrong, and sent as they are."""

from __future__ import annotations

import json
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from tidegate.errors import ConfigError
from tidegate.load.ask import Ask
from tidegate.load.named_plans import find_plan
from tidegate.load.plan_options import PlanOptions
from tidegate.load.workloads.blend import Blend
from tidegate.load.workloads.filler import NONCE_WORDS
from tidegate.load.workloads.given_prompts import read_prompts
from tidegate.load.workloads.length_draws import Fixed
from tidegate.load.workloads.recipe import Nonce, Recipe

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "load-prompts.jsonl"
LINES: list[dict[str, Any]] = [
    {"prompt": 'say "yes" \\ no\nnow ü'},
    {"messages": [{"role": "system", "content": "brief"}, {"role": "user", "content": "hello"}], "max_tokens": 5},
    {
        "messages": [
            {"role": "system", "content": "a"},
            {"role": "user", "name": "kim", "content": "b"},
            {"role": "assistant", "content": "c"},
            {"role": "user", "content": "d"},
        ],
        "label": "long talk",
    },
]


def sent(tmp_path: Path, nonce: Nonce, count: int = 3) -> list[Ask]:
    path = tmp_path / "prompts.jsonl"
    path.write_text("\n\n".join(json.dumps(line) for line in LINES) + "\n")
    recipe = Recipe(label="own", prompt=Fixed(1), output=Fixed(40), nonce=nonce, given=read_prompts(path))
    return [*islice(Blend(name="x", recipes=(recipe,)).asks(0), count)]


def messages(ask: Ask) -> list[dict[str, str]]:
    found: list[dict[str, str]] = json.loads(b'{"model":"m"' + ask.body)["messages"]
    return found


def test_prompts_are_sent_as_they_are_and_each_as_often_as_the_others(tmp_path: Path) -> None:
    found = sent(tmp_path, Nonce.NONE, 30)
    wanted = [line.get("messages") or [{"role": "user", "content": line["prompt"]}] for line in LINES]
    counted = Counter(json.dumps(messages(ask)) for ask in found)
    assert counted == {json.dumps(each): 10 for each in wanted}
    assert {(ask.label, ask.max_tokens) for ask in found} == {("own", 40), ("own", 5), ("long talk", 40)}


def test_a_nonce_stands_before_the_first_words_or_behind_the_last(tmp_path: Path) -> None:
    for plain, first, last in zip(
        *(sent(tmp_path, nonce) for nonce in (Nonce.NONE, Nonce.START, Nonce.END)), strict=True
    ):
        said = messages(plain)
        begun, ended = messages(first), messages(last)
        assert begun[0]["content"].split(" ", NONCE_WORDS)[-1] == said[0]["content"]
        assert ended[-1]["content"].rsplit(" ", NONCE_WORDS)[0] == said[-1]["content"]
        assert begun[1:] == said[1:]
        assert ended[:-1] == said[:-1]


def test_the_example_is_read() -> None:
    given = read_prompts(EXAMPLE)
    assert len(given.prompts) == 3
    assert given.source == "load-prompts.jsonl"


def test_a_file_of_prompts_is_a_plan_that_sends_each_once() -> None:
    plan = find_plan(f"prompts@{EXAMPLE}", PlanOptions(scale=0.5))
    (phase,) = plan.phases
    assert (phase.users, phase.count) == (2, 3)
    assert {ask.label for ask in islice(phase.source.asks(0), 3)} == {"prompt", "parcel"}
    assert [ask.max_tokens for ask in islice(phase.source.asks(0), 3) if ask.label == "parcel"] == [64]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("nonsense", "Expecting value"),
        ("[]", "each line is an object"),
        ('{"prompt": "a", "messages": []}', "give either prompt or messages"),
        ('{"label": "a"}', "give either prompt or messages"),
        ('{"prompt": ""}', "must be text and not empty"),
        ('{"messages": []}', "messages must be a list"),
        ('{"messages": [{"role": "user", "content": 4}]}', "must be text and not empty"),
        ('{"prompt": "a", "max_tokens": 0}', "max_tokens must be a whole number"),
        ('{"prompt": "a", "max_tokens": true}', "max_tokens must be a whole number"),
        ('{"prompt": "a", "label": 3}', "label must be text"),
        ('{"prompt": "a", "colour": 3}', "unknown key 'colour'"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(line: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "p.jsonl"
    path.write_text('{"prompt": "fine"}\n' + line + "\n")
    with pytest.raises(ConfigError) as error:
        read_prompts(path)
    assert error.value.problems[0].startswith(f"{path}:2: ")
    assert said in error.value.problems[0]


@pytest.mark.parametrize("content", [b"", b"\xff"])
def test_a_file_without_prompts_is_told(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "p.jsonl"
    path.write_bytes(content)
    with pytest.raises(ConfigError):
        read_prompts(path)


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        read_prompts(tmp_path / "none.jsonl")
