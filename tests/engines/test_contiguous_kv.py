"""The contiguous baseline: the failure that paging ended, and books that agree whatever is taken and given back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.engines.contiguous_kv import ContiguousKv
from tidegate.engines.kv_memory import KvMemory
from tidegate.engines.paged_kv import PagedKv
from tidegate.engines.presets import preset
from tidegate.engines.simulated import EngineEvent, EngineEventKind, SimulatedConfig, SimulatedEngine
from tidegate.engines.step_model import StepModel

HOLES_MB = [890] * 12 + [320]
"""11 GB in all, in pieces of which none is larger than 890 MB."""


def torn_card() -> ContiguousKv:
    """24 GB, of which 13 are in use between the holes (SPEC S0-20)."""
    card = ContiguousKv(24_000)
    for index, hole in enumerate(HOLES_MB):
        card.take(2 * index, 1000)
        card.take(2 * index + 1, hole)
    for index, hole in enumerate(HOLES_MB):
        card.give_back(2 * index + 1, hole)
    return card


def test_a_request_of_1100_mb_fails_with_11_gb_free_when_the_largest_block_is_890_mb() -> None:
    card = torn_card()
    assert (card.free_tokens, card.largest_free_tokens) == (11_000, 890)
    assert card.is_torn(1100)
    assert not card.fits(1100, 0)
    with pytest.raises(MemoryError, match="1100 asked, 11000 free, of which the largest block is 890"):
        card.take(99, 1100)
    seen = KvMemory(card.total_tokens, card.used_tokens, card.used_tokens, card.largest_free_tokens)
    assert seen.external_fragmentation == pytest.approx(0.919, abs=0.001)
    assert seen.pool_pressure == pytest.approx(13 / 24)


def test_the_same_request_fits_where_memory_is_paged() -> None:
    card = PagedKv(24_000, 16)
    card.take(0, 13_000)
    assert card.fits(1100, 0)
    assert not card.is_torn(1100)
    seen = KvMemory(card.total_tokens, card.used_tokens, card.used_tokens, card.largest_free_tokens)
    assert seen.external_fragmentation == 0.0


def test_a_full_pool_is_not_torn() -> None:
    card = ContiguousKv(1000)
    card.take(0, 950)
    assert not card.is_torn(100)
    assert not card.fits(100, 0)
    assert card.fits(50, 0)


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 400)), max_size=60))
def test_regions_never_overlap_and_holes_beside_each_other_become_one(script: list[tuple[bool, int]]) -> None:
    card, live = ContiguousKv(1000), dict[int, int]()
    for number, (takes, size) in enumerate(script):
        if takes and card.fits(size, 0):
            card.take(number, size)
            live[number] = size
        elif live:
            owner = [*live][size % len(live)]
            card.give_back(owner, live.pop(owner))
        assert card.used_tokens == sum(live.values())
        assert card.largest_free_tokens <= card.free_tokens
    for owner, size in live.items():
        card.give_back(owner, size)
    assert card.largest_free_tokens == card.free_tokens == 1000


STEP = StepModel.from_ms(10.0, 0.01, 0.01, 0.0)


def engine(kv_tokens: int) -> SimulatedEngine:
    return SimulatedEngine(SimulatedConfig(step=STEP, kv_tokens=kv_tokens, is_contiguous=True))


def ends(events: list[EngineEvent]) -> dict[int, EngineEventKind]:
    return {event.id: event.kind for event in events if event.kind is not EngineEventKind.FIRST_TOKEN}


def test_an_engine_on_it_fails_a_request_that_no_hole_holds() -> None:
    """Short and long answers side by side: the short ones leave holes that a longer one does not fit into."""
    card = engine(1000)
    for number in range(5):
        card.submit(number, 100, 5 if number % 2 == 0 else 100, 0.0, 100)
    early = card.advance(0.2)
    assert ends(early) == {0: EngineEventKind.FINISHED, 2: EngineEventKind.FINISHED, 4: EngineEventKind.FINISHED}
    seen = card.memory(0.2)
    assert (seen.allocated, seen.free, seen.largest_free) == (400, 600, 200)
    card.submit(9, 200, 10, 0.2, 100)
    assert ends(card.advance(0.5)) == {9: EngineEventKind.OUT_OF_MEMORY}


def test_an_engine_on_it_lets_a_request_wait_while_the_pool_is_only_full() -> None:
    card = engine(400)
    card.submit(1, 100, 20, 0.0, 200)
    card.submit(2, 100, 20, 0.0, 200)
    assert card.reading(0.05).waiting == 1
    assert ends(card.advance(9.0)) == {1: EngineEventKind.FINISHED, 2: EngineEventKind.FINISHED}
    assert card.memory(9.0) == KvMemory(total=400, allocated=0, filled=0, largest_free=400)


def test_a_region_for_the_bound_holds_little_while_the_answer_is_short() -> None:
    card = engine(4000)
    card.submit(1, 100, 50, 0.0, 1900)
    seen = card.memory(0.02)
    assert (seen.allocated, seen.pool_pressure) == (2000, 0.5)
    assert seen.internal_waste > 0.94
    assert seen.external_fragmentation == 0.0


def test_without_a_bound_the_truth_is_reserved_and_a_crash_forgets_all_regions() -> None:
    card = engine(4000)
    card.submit(1, 100, 50, 0.0)
    assert card.memory(0.02).allocated == 150
    card.crash(0.03)
    card.restart()
    assert card.memory(0.04).free == 4000


def test_a_paged_engine_has_no_external_fragmentation_and_wastes_less_than_a_block_a_sequence() -> None:
    paged = SimulatedEngine(preset("A100", "llama-3-8b"))
    for number in range(20):
        paged.submit(number, 100 + number, 50, 0.0)
    seen = paged.memory(0.3)
    assert seen.external_fragmentation == 0.0
    assert 0 <= seen.allocated - seen.filled < 20 * 16
    assert seen.filled > 20 * 100
