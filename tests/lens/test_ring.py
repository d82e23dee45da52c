"""The ring keeps the newest rows and finds them by the id their client saw."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.lens.rows import row
from tidegate.lens.ring import Ring


def test_rows_are_found_by_request_id_and_listed_newest_first() -> None:
    ring = Ring(10)
    ring.add([row(id=n, request_id=f"req-{n}") for n in range(4)])
    assert [found.id for found in ring.find("req-2")] == [2]
    assert [found.id for found in ring.recent(3)] == [3, 2, 1]
    assert ring.find("req-9") == []


def test_an_id_that_a_client_used_again_finds_both_rows() -> None:
    ring = Ring(10)
    ring.add([row(id=1, request_id="same"), row(id=2, request_id="same")])
    assert [found.id for found in ring.find("same")] == [1, 2]


@given(st.lists(st.sampled_from("abc"), max_size=30), st.integers(1, 6))
def test_the_ring_holds_exactly_the_last_rows_and_its_index_agrees(ids: list[str], size: int) -> None:
    ring = Ring(size)
    for n, request_id in enumerate(ids):
        ring.add([row(id=n, request_id=request_id)])
    kept = list(enumerate(ids))[-size:]
    assert [each.id for each in ring] == [n for n, _ in kept]
    for request_id in "abc":
        assert [found.id for found in ring.find(request_id)] == [n for n, each in kept if each == request_id]


def test_a_ring_of_size_nought_keeps_nothing() -> None:
    ring = Ring(0)
    ring.add([row()])
    assert len(ring) == 0
    assert ring.find("req-1") == []
