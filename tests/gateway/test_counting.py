from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.gateway.counting import BYTES_PER_TOKEN_RANGE, Ratios
from tidegate.gateway.settings import Counting
from tidegate.wire.body import Body


def body(text: str = "x" * 798, **fields: object) -> Body:
    return Body(json.dumps({"prompt": text, **fields}).encode())


def ratios() -> Ratios:
    return Ratios(Counting(bytes_per_token=4.0, image_tokens=1000), ["m"])


def test_an_estimate_comes_from_the_bytes_and_learns_from_usage() -> None:
    learned = ratios()
    assert learned.tokens("m", body()) == 200
    for _ in range(200):
        learned.learn("m", body(), 400)
    assert learned.tokens("m", body()) == pytest.approx(400, rel=0.01)
    assert learned.tokens("other", body()) == 200


def test_ids_are_counted_not_estimated_and_lists_are_shared_out() -> None:
    assert ratios().tokens("m", Body(b'{"prompt": [[1,2,3],[4,5,6]]}')) == 3
    assert ratios().tokens("m", Body(json.dumps({"prompt": ["y" * 396] * 4}).encode())) == 100
    assert ratios().tokens("m", Body(b"{}")) == 1


def test_an_image_costs_what_is_configured() -> None:
    part = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 50_000}}
    pictured = Body(json.dumps({"messages": [{"role": "user", "content": [part, part]}]}).encode())
    assert 2000 < ratios().tokens("m", pictured) < 2100


@given(st.lists(st.integers(-5, 10**9)))
def test_no_usage_makes_the_ratio_absurd(counts: list[int]) -> None:
    learned = ratios()
    for count in counts:
        learned.learn("m", body(), count)
    low, high = BYTES_PER_TOKEN_RANGE
    assert 800 / high - 1 <= learned.tokens("m", body()) <= 800 / low + 1


def test_short_prompts_teach_nothing() -> None:
    learned = ratios()
    learned.learn("m", body("hi"), 30)
    assert learned.tokens("m", body()) == 200


def test_a_reload_keeps_what_was_learned() -> None:
    learned = ratios()
    for _ in range(200):
        learned.learn("m", body(), 400)
    learned.serve(Counting(), ["m", "new"])
    assert learned.tokens("m", body()) > 390
    assert learned.tokens("new", body()) == 200
