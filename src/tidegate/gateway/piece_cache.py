"""Pieces of prompts that were tokenized before: turns of a conversation begin with the turns before them."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from typing import NamedTuple

MOST_PIECES = 16_384
MOST_KEPT_BYTES = 32 * 1024 * 1024
"""Of token ids as JSON, of which about six bytes make a token."""
PIECE_BYTES = 100
"""What an entry costs beside its ids: digest, tuple, link."""


class Piece(NamedTuple):
    """One stretch of text."""

    tokens: int
    ids: bytes | None
    """``1,2,3``; None where only the number was asked for."""


class PieceCache:
    """Least recently used first out; bounded in pieces and in bytes. Texts are kept as digests only."""

    def __init__(self, most_pieces: int = MOST_PIECES, most_bytes: int = MOST_KEPT_BYTES) -> None:
        self._most_pieces = most_pieces
        self._most_bytes = most_bytes
        self._pieces: OrderedDict[bytes, Piece] = OrderedDict()
        self.size_bytes = 0

    def __len__(self) -> int:
        return len(self._pieces)

    def find(self, text: str, wants_ids: bool) -> Piece | None:
        """What is known of ``text``; None too where ids are wanted and only their number is known."""
        digest = _digest(text)
        piece = self._pieces.get(digest)
        if piece is None or (wants_ids and piece.ids is None):
            return None
        self._pieces.move_to_end(digest)
        return piece

    def keep(self, text: str, piece: Piece) -> None:
        digest = _digest(text)
        known = self._pieces.pop(digest, None)
        if known is not None:
            self.size_bytes -= _size_bytes(known)
        self._pieces[digest] = piece
        self.size_bytes += _size_bytes(piece)
        while len(self._pieces) > self._most_pieces or self.size_bytes > self._most_bytes:
            _, oldest = self._pieces.popitem(last=False)
            self.size_bytes -= _size_bytes(oldest)


def _digest(text: str) -> bytes:
    # Of texts that clients chose: a digest that nobody can aim at another's.
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _size_bytes(piece: Piece) -> int:
    return PIECE_BYTES + len(piece.ids or b"")
