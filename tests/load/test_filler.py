"""Slices of a text, by words."""

from __future__ import annotations

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.load.workloads.filler import FILLER_WORDS, NONCE_WORDS, Filler, nonce
from tidegate.load.workloads.vocabulary import VOCABULARY

FILLER = Filler(Random(1))
WORDS = FILLER.words(0, FILLER_WORDS).split(" ")


@settings(max_examples=100, deadline=None)
@given(start=st.integers(0, 2**31), count=st.integers(-1, 3 * FILLER_WORDS))
def test_words_go_round_and_round(start: int, count: int) -> None:
    found = FILLER.words(start, count).split()
    assert len(found) == max(0, count)
    for place in {0, count // 2, count - 1} if found else ():
        assert found[place] == WORDS[(start + place) % FILLER_WORDS]


def test_equal_seeds_give_equal_text_and_others_another() -> None:
    assert Filler(Random(1)).words(5, 50) == FILLER.words(5, 50)
    assert Filler(Random(2)).words(5, 50) != FILLER.words(5, 50)


def test_the_vocabulary_is_plain_and_has_no_word_twice() -> None:
    assert len(VOCABULARY) == len(set(VOCABULARY)) == 512
    assert all(word.isascii() and word.isalpha() and word.islower() for word in VOCABULARY)


def test_no_nonce_comes_twice() -> None:
    found = {nonce(12345, index) for index in range(20_000)}
    assert len(found) == 20_000
    assert all(len(each.split()) == NONCE_WORDS for each in found)
