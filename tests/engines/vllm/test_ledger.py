from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engines.vllm.toy_engine import Sequence, ToyEngine
from tidegate.engines.vllm.blocks import BlockGroup, BlockLayout
from tidegate.engines.vllm.claim import Claim
from tidegate.engines.vllm.ledger import Ledger
from tidegate.engines.vllm.reservation import Pool, Reservation

PLAIN = BlockLayout((BlockGroup(8),))
WINDOWED = BlockLayout((BlockGroup(8), BlockGroup(8, 4)))


def ledger(blocks: int = 40, layout: BlockLayout = PLAIN, **rules: Any) -> Ledger:
    return Ledger(Reservation(**rules), Pool(blocks=blocks, layout=layout, longest_tokens=160))


def claim(name: str, prompt: int, most: int, **more: Any) -> Claim:
    return Claim(id=name, prompt_tokens=prompt, most_output_tokens=most, tokens=prompt, **more)


def sequence(name: str, prompt: int, most: int, length: int, shared: int = 0) -> Sequence:
    return Sequence(claim(name, prompt, most), min(length, most), shared_blocks=min(shared, prompt // 8))


def run(engine: ToyEngine, within_steps: int) -> None:
    while (engine.running or engine.waiting) and engine.steps < within_steps:
        engine.step()
    assert not engine.running
    assert not engine.waiting


RULES: dict[str, dict[str, Any]] = {
    "worst_case": {"rule": "worst_case"},
    "peak": {"rule": "peak"},
    "learned": {"rule": "peak", "lengths": "learned"},
    "guaranteed": {"rule": "peak", "lengths": "learned", "guaranteed": True},
}
NEVER_PREEMPTS = ("worst_case", "peak", "guaranteed")

events = st.lists(
    st.one_of(
        st.tuples(st.just("submit"), st.integers(1, 100), st.integers(1, 60), st.integers(1, 60), st.integers(0, 4)),
        st.tuples(st.just("step"), st.integers(1, 30)),
        st.tuples(st.just("abort"), st.integers(0, 99)),
    ),
    max_size=60,
)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("layout", [PLAIN, WINDOWED], ids=["plain", "windowed"])
@given(events=events, overtakes=st.integers(0, 3), pause_steps=st.integers(0, 4))
@settings(max_examples=60, deadline=None)
def test_whatever_happens_the_pool_holds_nothing_leaks_and_all_end(
    rule: str, layout: BlockLayout, events: list[tuple[Any, ...]], overtakes: int, pause_steps: int
) -> None:
    engine = ToyEngine(ledger(layout=layout, overtakes=overtakes, pause_steps=pause_steps, **RULES[rule]))
    sequences = []
    for index, (kind, *values) in enumerate(events):
        if kind == "submit":
            sequences.append(sequence(f"{index}", *values))
            engine.submit(sequences[-1])
        elif kind == "abort":
            engine.abort(values[0])
        else:
            for _ in range(values[0]):
                engine.step()
        assert engine.fullest <= 40
        assert {each.claim.id for each in engine.running} == set(engine.ledger.seated)
    run(engine, within_steps=40_000)
    assert engine.ledger.seated == {}
    assert engine.ledger.reserved_blocks() == 0
    # Somebody who is never preempted is passed as often as the bound says and no more.
    assert all(each.overtaken <= overtakes for each in sequences if not each.preemptions)
    if rule in NEVER_PREEMPTS:
        assert engine.ledger.preemptions == 0


def test_worst_case_promises_no_more_than_there_is() -> None:
    book = ledger(blocks=10, rule="worst_case", overtakes=0)
    assert book.admits(claim("a", 8, 33))  # five blocks at its longest
    assert book.admits(claim("b", 8, 33))
    assert not book.admits(claim("c", 1, 1))
    assert book.figures(["a", "b"]).reserved_blocks == 10
    book.forget("a")
    book.pauses([], 10)
    assert book.admits(claim("c", 1, 1))
    assert book.figures(["b", "c"]).reserved_blocks == 6


def test_whoever_is_alone_may_run_however_long_it_could_get() -> None:
    for rules in RULES.values():
        assert ledger(blocks=4, **rules).admits(claim("giant", 30, 130))


def test_the_peak_test_admits_two_whose_ends_do_not_meet() -> None:
    # The first ends in 8 steps with 5 blocks; the second then still grows to 9.
    first, second = claim("first", 32, 9), claim("second", 8, 64)
    assert ledger(blocks=10, rule="peak").admits(first)
    by_peak, by_sum = ledger(blocks=10, rule="peak"), ledger(blocks=10, rule="worst_case")
    for book in (by_peak, by_sum):
        assert book.admits(claim("first", 32, 9))
    assert by_peak.admits(second)
    assert not by_sum.admits(second)


def test_a_preempted_sequence_is_overtaken_by_nobody() -> None:
    book = ledger(blocks=10, rule="worst_case", overtakes=2)
    assert book.admits(claim("runs", 40, 33))
    assert not book.admits(claim("half done", 40, 33, is_preempted=True))
    assert not book.admits(claim("tiny", 1, 1))


def test_a_blocked_sequence_is_overtaken_as_often_as_the_bound_says() -> None:
    book = ledger(blocks=20, rule="worst_case", overtakes=2)
    assert book.admits(claim("runs", 80, 1))
    for step in range(4):
        book.pauses([], 10)
        assert not book.admits(claim("giant", 100, 8))
        tiny = claim(f"tiny {step}", 1, 1)
        assert book.admits(tiny) == (step < 2)
        if step < 2:
            book.begin(tiny, 1)
    assert book.figures([]).overtakes == 2


def test_who_was_admitted_and_met_another_limit_overtook_nobody() -> None:
    book = ledger(blocks=20, rule="worst_case", overtakes=1)
    assert book.admits(claim("runs", 80, 1))
    for _ in range(5):
        book.pauses([], 10)
        assert not book.admits(claim("giant", 100, 8))
        assert book.admits(claim("tiny", 1, 1))
        book.unseat("tiny")
    assert book.figures([]).overtakes == 0


def full(pause_steps: int = 2) -> tuple[Ledger, list[Claim]]:
    """Two that hold the whole pool, the older one in need of a block; learned lengths said otherwise."""
    book = ledger(blocks=4, rule="peak", lengths="learned", pause_steps=pause_steps)
    old, young = claim("old", 16, 60), claim("young", 8, 60)
    for _ in range(20):
        book.lengths.record(60, 1)
    assert book.admits(old)
    assert book.admits(young)
    old.tokens, old.output_tokens, old.held_blocks = 17, 1, 2
    young.tokens, young.output_tokens, young.held_blocks = 9, 1, 1
    return book, [old, young]


def test_the_older_one_gets_the_last_block_and_the_younger_waits() -> None:
    book, both = full()
    assert book.pauses(both, 1) == ["young"]


def test_nobody_begins_while_somebody_is_paused() -> None:
    book, both = full()
    book.pauses(both, 1)
    assert not book.admits(claim("tiny", 1, 1))


def test_a_pause_ends_after_its_steps_and_begins_anew_after_a_step_of_work() -> None:
    book, both = full(pause_steps=2)
    assert [book.pauses(both, 1) for _ in range(4)] == [["young"], ["young"], [], ["young"]]
    assert book.figures([]).paused_steps == 3
    assert book.figures([]).pauses == 2


def test_all_are_never_paused_at_once() -> None:
    book, both = full()
    assert book.pauses(both, 0) == []


def test_a_claim_that_the_engine_does_not_know_is_a_leak() -> None:
    book = ledger()
    assert book.admits(claim("a", 8, 8))
    assert book.figures(["a"]).leaked == 0
    assert book.figures([]).leaked == 1


def test_the_highest_reservation_is_remembered() -> None:
    book = ledger(rule="worst_case")
    assert book.admits(claim("a", 8, 33))
    assert book.figures(["a"]).peak_reserved_blocks == 5
    assert book.admits(claim("b", 8, 33))
    book.forget("b")
    assert book.figures(["a"]).peak_reserved_blocks == 10
    assert book.figures(["a"]).reserved_blocks == 5
