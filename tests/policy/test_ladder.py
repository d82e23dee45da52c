"""The ladder's configuration and its stored answers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tidegate.policy.answers import AnswersConfig
from tidegate.policy.decisions import Answer
from tidegate.policy.ladder import Ladder, LadderConfig, Rung, SimplifyConfig
from tidegate.policy.request import Request

CONFIG = LadderConfig()
ASKED = Request(1, "a", 0.0, 0, cache_key=b"k")


def stocked(config: LadderConfig = CONFIG) -> Ladder:
    ladder = Ladder(config)
    ladder.answers.remember(b"k", b"body", 0.0)
    return ladder


def test_a_stored_answer_is_found_with_its_age_while_it_is_young_enough_for_the_model() -> None:
    ladder = stocked()
    assert ladder.stored(CONFIG, ASKED, 3.0) == Answer(b"body", 3.0)
    impatient = replace(CONFIG, answers=AnswersConfig(max_age_s=2.0))
    assert ladder.stored(impatient, ASKED, 3.0) is None
    assert ladder.stored(CONFIG, ASKED, 4.0) == Answer(b"body", 4.0)
    assert ladder.stored(CONFIG, replace(ASKED, cache_key=None), 3.0) is None
    assert ladder.stored(CONFIG, replace(ASKED, cache_key=b"other"), 3.0) is None


def test_answers_are_kept_only_where_some_ladder_serves_them() -> None:
    honest = replace(CONFIG, order=(Rung.ERROR,))
    assert Ladder(CONFIG).keeps_answers
    assert not Ladder(replace(CONFIG, enabled=False)).keeps_answers
    assert not Ladder(honest).keeps_answers
    assert Ladder(replace(honest, answers=AnswersConfig(serve_first=True))).keeps_answers
    ladder = Ladder(honest)
    ladder.reconfigure(honest, {"a": CONFIG})
    assert ladder.keeps_answers
    assert (ladder.of("a"), ladder.of("b")) == (CONFIG, honest)


def test_a_reload_reaches_the_answers() -> None:
    ladder = stocked()
    ladder.reconfigure(replace(CONFIG, answers=AnswersConfig(max_bytes=3, max_answer_bytes=3)), {})
    assert ladder.answers.view() == {"answers": 0, "bytes": 0}


@pytest.mark.parametrize("order", [(), (Rung.CACHE,), (Rung.ERROR, Rung.CACHE), (Rung.CACHE, Rung.CACHE, Rung.ERROR)])
def test_the_order_names_each_rung_once_and_ends_honestly(order: tuple[Rung, ...]) -> None:
    with pytest.raises(ValueError, match=r"ladder\.order"):
        LadderConfig(order=order)


@pytest.mark.parametrize("fields", [{"max_tokens": 0}, {"keep_messages": 0}])
def test_a_simpler_answer_has_at_least_one_token_and_one_message(fields: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        SimplifyConfig(**fields)


@pytest.mark.parametrize(
    "fields",
    [
        {"light_wait_s": 0.0},
        {"relieve_until_s": -0.1},
        {"relieve_after_s": 0.2, "relieve_until_s": 0.3},
        {"slow_count": 0},
        {"slow_ratio": 1.0},
    ],
)
def test_thresholds_of_waiting_must_make_sense(fields: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="ladder needs"):
        LadderConfig(**fields)


def test_long_waits_are_shortened_only_where_a_lighter_model_is_named_and_asked_for() -> None:
    light = replace(CONFIG, light_model="l")
    assert light.relieves
    without = replace(light, order=(Rung.CACHE, Rung.ERROR))
    for config in (CONFIG, replace(light, enabled=False), replace(light, relieve_after_s=None), without):
        assert not config.relieves
    assert [replace(light, standby="s").target(rung) for rung in Rung] == [None, None, "l", "s", None]
