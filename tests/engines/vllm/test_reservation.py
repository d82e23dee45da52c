from __future__ import annotations

import json
from typing import Any

import pytest

from tidegate.engines.vllm.blocks import BlockGroup, BlockLayout
from tidegate.engines.vllm.claim import Claim
from tidegate.engines.vllm.reservation import Pool, Reservation


@pytest.mark.parametrize(
    ("values", "guaranteed"),
    [
        ({"rule": "worst_case"}, True),
        ({}, True),
        ({"guaranteed": False}, False),
        ({"lengths": "learned"}, False),
        ({"lengths": "learned", "guaranteed": True}, True),
    ],
)
def test_no_preemption_is_promised_where_it_costs_nothing_or_is_asked_for(
    values: dict[str, Any], guaranteed: bool
) -> None:
    assert Reservation.of(values).is_guaranteed is guaranteed


def test_it_survives_the_command_line() -> None:
    reservation = Reservation(lengths="learned", quantile=0.6, history_file="/var/lib/tidegate/lengths.json")
    assert Reservation.of(json.loads(json.dumps(reservation.as_json()))) == reservation
    assert Reservation().as_json() == {}


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"rules": "peak"}, "unknown key 'rules'; there are guaranteed, "),
        ({"rule": "best"}, "rule must be one of worst_case, peak, not 'best'"),
        ({"lengths": ["learned"]}, "lengths must be one of declared, learned"),
        ({"quantile": 1}, "quantile must lie between 0 and 1, not 1"),
        ({"quantile": True}, "quantile must lie between 0 and 1"),
        ({"quantile": "0.5"}, "quantile must lie between 0 and 1"),
        ({"guaranteed": "yes"}, "guaranteed must be true, false or null"),
        ({"overtakes": -1}, "overtakes must be a whole number of at least 0"),
        ({"overtakes": True}, "overtakes must be a whole number"),
        ({"pause_steps": 1.5}, "pause_steps must be a whole number"),
        ({"history_file": ""}, "history_file must be a path"),
        ({"unknown_version": "hope"}, "unknown_version must be one of refuse, native"),
    ],
)
def test_what_cannot_be_is_refused_in_words(values: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Reservation.of(values)


def claim(prompt: int, most: int, tokens: int) -> Claim:
    return Claim(id="a", prompt_tokens=prompt, most_output_tokens=most, tokens=tokens)


def pool(**more: Any) -> Pool:
    return Pool(blocks=20, layout=BlockLayout((BlockGroup(8),)), **more)


def test_the_last_token_of_an_answer_takes_no_room() -> None:
    assert pool().most_blocks(claim(8, 9, 8)) == 2
    assert pool().most_blocks(claim(8, 10, 8)) == 3


def test_a_step_needs_room_for_all_tokens_that_there_are() -> None:
    assert pool().next_blocks(claim(8, 9, 9)) == 2


def test_speculation_needs_room_for_what_is_thrown_away() -> None:
    assert pool(slack_tokens=5).most_blocks(claim(8, 9, 8)) == 3
    assert pool(slack_tokens=5).next_blocks(claim(8, 9, 12)) == 3


def test_nobody_is_promised_more_than_the_context_or_the_pool() -> None:
    assert pool(longest_tokens=64).most_blocks(claim(8, 500, 8)) == 8
    assert pool().most_blocks(claim(8, 500, 8)) == 20
