"""Stored answers: bounded in bytes and age, by a key that belongs to one tenant."""

from __future__ import annotations

from collections import OrderedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.policy.answers import Answers, AnswersConfig

CONFIG = AnswersConfig(max_bytes=100, max_answer_bytes=40, max_age_s=10.0)


def test_an_answer_is_found_with_its_age_until_it_is_too_old() -> None:
    answers = Answers(CONFIG)
    answers.remember(b"k", b"body", 5.0)
    assert answers.find(b"k", 7.5, CONFIG.max_age_s) == (b"body", 2.5)
    assert answers.find(b"k", 15.0, CONFIG.max_age_s) == (b"body", 10.0)
    assert answers.find(b"k", 15.1, CONFIG.max_age_s) is None
    assert answers.view() == {"answers": 0, "bytes": 0}


def test_another_tenants_key_finds_nothing() -> None:
    answers = Answers(CONFIG)
    answers.remember(b"digest of tenant one", b"body", 0.0)
    assert answers.find(b"digest of tenant two", 0.0, CONFIG.max_age_s) is None


def test_an_answer_that_is_too_large_is_not_kept_and_leaves_the_old_one_alone() -> None:
    answers = Answers(CONFIG)
    answers.remember(b"k", b"x" * 40, 0.0)
    answers.remember(b"k", b"y" * 41, 1.0)
    assert answers.find(b"k", 1.0, CONFIG.max_age_s) == (b"x" * 40, 1.0)


def test_a_new_answer_takes_the_place_of_the_old() -> None:
    answers = Answers(CONFIG)
    answers.remember(b"k", b"long answer", 0.0)
    answers.remember(b"k", b"short", 1.0)
    assert answers.view() == {"answers": 1, "bytes": 5}
    assert answers.find(b"k", 1.0, CONFIG.max_age_s) == (b"short", 0.0)


def test_when_the_bytes_are_used_up_the_one_unused_for_longest_goes() -> None:
    answers = Answers(CONFIG)
    for number in range(5):
        answers.remember(b"%d" % number, b"x" * 20, 0.0)
    answers.find(b"0", 0.0, CONFIG.max_age_s)
    answers.remember(b"5", b"x" * 20, 0.0)
    assert [number for number in range(6) if answers.find(b"%d" % number, 0.0, CONFIG.max_age_s)] == [0, 2, 3, 4, 5]


def test_a_reload_with_less_room_lets_the_unused_go() -> None:
    answers = Answers(CONFIG)
    for number in range(4):
        answers.remember(b"%d" % number, b"x" * 20, 0.0)
    answers.find(b"0", 0.0, CONFIG.max_age_s)
    answers.reconfigure(AnswersConfig(max_bytes=40, max_answer_bytes=40, max_age_s=10.0))
    assert [number for number in range(4) if answers.find(b"%d" % number, 0.0, CONFIG.max_age_s)] == [0, 3]


@given(
    st.lists(
        st.tuples(st.sampled_from([b"a", b"b", b"c", b"d", b"e"]), st.none() | st.integers(0, 50), st.floats(0.0, 4.0)),
        max_size=80,
    )
)
def test_it_is_a_least_recently_used_store_of_bounded_bytes(steps: list[tuple[bytes, int | None, float]]) -> None:
    answers, model, now = Answers(CONFIG), OrderedDict[bytes, tuple[float, int]](), 0.0
    for key, size, passed_s in steps:
        now += passed_s
        if size is None:
            found = answers.find(key, now, CONFIG.max_age_s)
            if key in model and now - model[key][0] > 10.0:
                del model[key]
            assert (found is not None) == (key in model)
            if found is not None:
                assert (len(found[0]), found[1]) == (model[key][1], now - model[key][0])
                model.move_to_end(key)
        else:
            answers.remember(key, b"x" * size, now)
            if size <= 40:
                model.pop(key, None)
                model[key] = (now, size)
                while sum(each for _, each in model.values()) > 100:
                    model.popitem(last=False)
        view = answers.view()
        assert view == {"answers": len(model), "bytes": sum(each for _, each in model.values())}
        assert view["bytes"] <= 100


@pytest.mark.parametrize("bounds", [(0, 0, 1.0), (10, 20, 1.0), (10, 10, 0.0)])
def test_impossible_bounds_are_refused(bounds: tuple[int, int, float]) -> None:
    with pytest.raises(ValueError, match="the cache needs"):
        AnswersConfig(max_bytes=bounds[0], max_answer_bytes=bounds[1], max_age_s=bounds[2])
