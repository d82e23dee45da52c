"""What was tokenized is found again, within bounds of number and size."""

from __future__ import annotations

from tidegate.gateway.piece_cache import PIECE_BYTES, Piece, PieceCache


def test_a_piece_is_found_by_its_text_alone() -> None:
    cache = PieceCache()
    cache.keep("a", Piece(3, None))
    assert cache.find("a", wants_ids=False) == Piece(3, None)
    assert cache.find("b", wants_ids=False) is None


def test_a_number_alone_is_no_answer_where_ids_are_wanted() -> None:
    cache = PieceCache()
    cache.keep("a", Piece(2, None))
    assert cache.find("a", wants_ids=True) is None
    cache.keep("a", Piece(2, b"1,2"))
    assert cache.find("a", wants_ids=True) == Piece(2, b"1,2")
    assert (len(cache), cache.size_bytes) == (1, PIECE_BYTES + 3)


def test_what_was_not_used_for_longest_goes_first() -> None:
    cache = PieceCache(most_pieces=2)
    for text in "ab":
        cache.keep(text, Piece(1, b"7"))
    cache.find("a", wants_ids=False)
    cache.keep("c", Piece(1, b"7"))
    assert [cache.find(text, wants_ids=False) is not None for text in "abc"] == [True, False, True]


def test_bytes_are_bounded_too_and_a_piece_above_them_is_not_kept() -> None:
    cache = PieceCache(most_bytes=2 * PIECE_BYTES + 10)
    cache.keep("a", Piece(1, b"1" * 5))
    cache.keep("b", Piece(1, b"1" * 5))
    assert (len(cache), cache.size_bytes) == (2, 2 * PIECE_BYTES + 10)
    cache.keep("c", Piece(1, b"1" * 300))
    assert (len(cache), cache.size_bytes) == (0, 0)
