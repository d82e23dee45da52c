"""Text of a wanted number of tokens, without a tokenizer and at the price of a slice."""

from __future__ import annotations

from itertools import accumulate
from random import Random

from tidegate.load.workloads.vocabulary import VOCABULARY

FILLER_WORDS = 1 << 15
"""Of the text that slices are taken from: what begins at different words has no beginning in common."""
NONCE_WORDS = 4
_WORD_BITS = 9
_NONCE_BITS = _WORD_BITS * NONCE_WORDS
_STRIDE = 0x9E3779B97
"""Odd, so that no nonce comes twice in 2^36, and large, so that neighbours differ in their first word."""


class Filler:
    """``text`` is the same for equal seeds. Plain ASCII without quotes: it stands in JSON as it is."""

    __slots__ = ("_ends", "_starts", "_text")

    def __init__(self, rng: Random) -> None:
        words = rng.choices(VOCABULARY, k=FILLER_WORDS)
        self._text = " ".join(words)
        self._ends = list(accumulate(words, lambda end, word: end + 1 + len(word), initial=-1))[1:]
        self._starts = [0, *(end + 1 for end in self._ends)]

    def words(self, start: int, count: int) -> str:
        """``count`` words from word ``start`` on, round and round."""
        start %= FILLER_WORDS
        if count < 1:
            return ""
        last = start + count - 1
        if last < FILLER_WORDS:
            return self._text[self._starts[start] : self._ends[last]]
        laps, rest = divmod(last + 1 - FILLER_WORDS, FILLER_WORDS)
        parts = [self._text[self._starts[start] :], *[self._text] * laps]
        if rest:
            parts.append(self._text[: self._ends[rest - 1]])
        return " ".join(parts)


def nonce(salt: int, index: int) -> str:
    """Four words that no other ``index`` has."""
    value = (index * _STRIDE + salt) % (1 << _NONCE_BITS)
    words = [
        VOCABULARY[(value >> shift) % len(VOCABULARY)] for shift in range(_NONCE_BITS - _WORD_BITS, -1, -_WORD_BITS)
    ]
    return " ".join(words)
