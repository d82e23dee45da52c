from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.load.ask import Ask
from tidegate.load.phase import Phase
from tidegate.load.turn import ASKS_A_TURN, turns_of


@dataclass(frozen=True)
class EverySecond:
    """Ask k is due at k seconds and tells the seed."""

    count: int = 10_000
    salt: str = ""

    title = "one a second"

    def asks(self, seed: int) -> Iterator[Ask]:
        body = b',"seed":%d,"k":%d}'
        return (Ask(index=k, label=self.salt, due_s=float(k), body=body % (seed, k)) for k in range(self.count))

    def salted(self, salt: str) -> EverySecond:
        return replace(self, salt=salt)


def phase(duration_s: float, **changes: object) -> Phase:
    return Phase(name="p", source=EverySecond(), duration_s=duration_s, **changes)  # type: ignore[arg-type]  # **changes


@given(st.floats(1, 200), st.floats(5, 100))
def test_turns_of_an_open_loop_send_each_ask_once_and_at_its_distance_from_the_turns_beginning(
    duration_s: float, turn_s: float
) -> None:
    turns = turns_of(phase(duration_s), turn_s)
    assert sum(turn.duration_s for turn in turns) == pytest.approx(duration_s)
    assert all(turn.duration_s <= turn_s * (1 + 1e-9) for turn in turns)
    sent, begin_s = [], 0.0
    for turn in turns:
        asks = [ask for ask in islice(turn.source.asks(1), 1000) if ask.due_s < turn.duration_s]
        sent += [ask.index for ask in asks]
        assert all(ask.index == pytest.approx(begin_s + ask.due_s, abs=1e-6) for ask in asks)
        begin_s += turn.duration_s
    assert sent == list(range(len(sent)))
    assert abs(len(sent) - duration_s) <= 1 + len(turns)


def test_turns_of_a_closed_loop_have_asks_and_numbers_of_their_own() -> None:
    turns = turns_of(phase(60.0, users=4, count=7), 20.0)
    assert [turn.count for turn in turns] == [3, 2, 2]
    firsts = [next(turn.source.asks(1)) for turn in turns]
    assert [ask.index for ask in firsts] == [0, ASKS_A_TURN, 2 * ASKS_A_TURN]
    assert len({ask.body for ask in firsts}) == 3
    assert next(turns[1].source.asks(1)) == firsts[1], "each target meets the same"
    assert turns[0].source.title == "one a second"


def test_fewer_asks_than_turns_make_no_empty_turns() -> None:
    assert [turn.count for turn in turns_of(phase(60.0, users=1, count=2), 10.0)] == [1, 1]


def test_a_spike_is_not_cut() -> None:
    whole = phase(60.0, spike=(20.0, 30.0))
    assert turns_of(whole, 10.0) == [whole]
    assert turns_of(phase(10.0), 10.0) == [phase(10.0)]
    assert turns_of(phase(20.0), 10.0)[0].source.title == "one a second"


@pytest.mark.parametrize("users", [None, 2])
def test_a_turns_nonces_can_be_made_its_own(users: int | None) -> None:
    turn = turns_of(phase(20.0, users=users), 10.0)[1]
    assert next(turn.source.asks(1)).label == ""
    assert next(turn.source.salted("b").asks(1)).label == "b"
