from __future__ import annotations

import json
from time import process_time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.load.made_samples import played, sample
from tidegate.load.client_outcome import ClientOutcome
from tidegate.load.consistency import MOST_PAIRS, consistency, is_loop, of_answers, similarity
from tidegate.load.sample import Sample


def answers(*texts: str, finish_reason: str = "stop", **changes: Any) -> list[Sample]:
    return [sample(0, 1.0, text=text, finish_reason=finish_reason, **changes) for text in texts]


def test_equal_answers_are_wholly_consistent() -> None:
    found = of_answers(answers(*["Light is scattered."] * 9))
    assert (found["same_share"], found["distinct_answers"], found["mean_similarity"]) == (1.0, 1, 1.0)
    assert found["compared_pairs"] == 36
    assert "json_share" not in found
    assert found["characters_least"] == found["characters_most"] == 19


def test_one_other_answer_shows_in_every_figure() -> None:
    found = of_answers(answers(*["the sky is blue today"] * 3, "the sky is red today and wet"))
    assert found["same_share"] == 0.75
    assert found["distinct_answers"] == 2
    assert found["least_similarity"] == pytest.approx(2 * 4 / 12)
    assert found["mean_similarity"] == pytest.approx((3 + 3 * 2 * 4 / 12) / 6)


def test_similarity_is_of_words_in_their_order() -> None:
    assert similarity(["a", "b", "c", "d"], ["a", "b", "x", "d"]) == 0.75
    assert similarity(["a"], ["b"]) == 0.0


def test_json_is_judged_where_it_is_what_comes() -> None:
    schema = {"type": "object", "required": ["city"]}
    texts = json.dumps({"city": "Ulm"}), json.dumps({"town": "Ulm"}), "[1", "7"
    assert of_answers(answers(*texts))["json_share"] == 0.5
    found = of_answers(answers(*texts), schema)
    assert (found["json_share"], found["schema_valid_share"]) == (0.5, 0.25)
    assert of_answers(answers("hello"), schema)["json_share"] == 0.0


def test_a_loop_is_a_long_repetition_or_one_that_only_its_bound_ended() -> None:
    circle = "the sky is blue because " * 12
    assert is_loop(circle, "length")
    assert not is_loop(circle, "stop"), "short, and it ended by itself"
    assert is_loop(circle * 20, "stop"), "the gateway's own check"
    assert not is_loop(" ".join(f"word{k}" for k in range(200)), "length")
    assert not is_loop("the the the the", "length"), "too short to tell"
    found = of_answers([*answers(circle, finish_reason="length"), *answers("fine")])
    assert (found["loop_share"], found["bound_share"]) == (0.5, 0.5)


def test_garbled_and_empty_answers_are_counted() -> None:
    found = of_answers(answers("\ufffd" * 600, "fine", " ", "fine"))
    assert (found["garbled_share"], found["empty_share"]) == (0.25, 0.25)


def test_one_answer_is_compared_with_nothing() -> None:
    assert "mean_similarity" not in of_answers(answers("alone"))


def test_groups_have_names_of_what_tells_them_apart() -> None:
    assert consistency([played([sample()])]) == {}
    one = consistency([played([*answers("a", "a"), sample(0, 1.0, ClientOutcome.ERROR)])])
    assert one["answers"] == 2
    both = consistency([played(answers("a")), played([*answers("b", target="u"), *answers("c", label="x")])])
    assert list(both) == ["chat · t", "chat · u", "x · t"]
    kept = consistency([played([*answers("a"), sample(label="rag")])])
    assert kept["answers"] == 1, "a label whose answers were not kept is no group"


def test_the_same_question_under_another_load_is_held_against_the_first() -> None:
    alone = answers(*["blue sky"] * 4, phase="alone", label="alone")
    pressed = answers("blue sky", "red sky", phase="pressed", label="pressed")
    other = answers("[1]", phase="json", label="json", prompt_tokens=7)
    found = consistency([played(alone), played(pressed), played(other)])
    assert list(found) == ["alone", "pressed", "json"]
    assert found["pressed"]["same_as_alone_share"] == 0.5
    assert 0.7 < found["pressed"]["to_alone_similarity"] < 0.8
    assert not any("alone" in name for name in (*found["alone"], *found["json"]))


def test_a_reply_that_is_no_answer_counts_against_its_form() -> None:
    bad = sample(0, 1.0, ClientOutcome.ABNORMAL, text="blue", code="output_format")
    found = consistency([played([*answers("{}"), bad])])
    assert (found["answers"], found["json_share"]) == (2, 0.5)
    assert consistency([played([bad])])["json_share"] == 0.0


def test_many_answers_are_compared_by_lot_and_equal_seeds_draw_equal_lots() -> None:
    texts = [" ".join(f"w{(k * j) % 17}" for j in range(30)) for k in range(1000)]
    began = process_time()
    found = of_answers(answers(*texts), seed=3)
    assert found["compared_pairs"] == MOST_PAIRS
    assert found == of_answers(answers(*texts), seed=3)
    assert process_time() - began < 10


@given(st.lists(st.text(alphabet="ab ", max_size=12), min_size=2, max_size=9))
def test_shares_stay_between_none_and_all(texts: list[str]) -> None:
    found = of_answers(answers(*texts))
    assert 0 <= found["least_similarity"] <= found["mean_similarity"] <= 1
    assert 1 / len(texts) <= found["same_share"] <= 1
    assert (found["distinct_answers"] == 1) is (found["same_share"] == 1.0)
