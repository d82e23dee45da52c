"""What a client gets instead of a refusal."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tidegate.policy.answers import AnswersConfig
from tidegate.policy.decisions import Answer, Reason, Refuse
from tidegate.policy.ladder import FINAL, Ladder, LadderConfig, Rung
from tidegate.policy.request import Request

CONFIG = LadderConfig()
ASKED = Request(1, "a", 0.0, 0, cache_key=b"k")


def stocked(config: LadderConfig = CONFIG) -> Ladder:
    ladder = Ladder(config)
    ladder.answers.remember(b"k", b"body", 0.0)
    return ladder


@pytest.mark.parametrize("reason", Reason)
def test_a_stored_answer_mends_every_refusal_that_is_not_final(reason: Reason) -> None:
    refusal = Refuse(reason, 1.0)
    got = stocked().descend(ASKED, refusal, 3.0)
    assert got == (refusal if reason in FINAL else Answer(b"body", 3.0, "cache", reason))


@pytest.mark.parametrize(
    ("config", "request_"),
    [
        (CONFIG, replace(ASKED, cache_key=None)),
        (CONFIG, replace(ASKED, cache_key=b"other")),
        (replace(CONFIG, enabled=False), ASKED),
        (replace(CONFIG, order=(Rung.ERROR,)), ASKED),
        (replace(CONFIG, answers=AnswersConfig(max_age_s=2.0)), ASKED),
    ],
)
def test_without_a_fresh_answer_of_its_own_the_refusal_stays(config: LadderConfig, request_: Request) -> None:
    refusal = Refuse(Reason.QUEUE_FULL, 1.0)
    assert stocked(config).descend(request_, refusal, 3.0) is refusal


def test_answers_are_kept_only_where_a_rung_serves_them() -> None:
    assert Ladder(CONFIG).keeps_answers
    assert not Ladder(replace(CONFIG, enabled=False)).keeps_answers
    assert not Ladder(replace(CONFIG, order=(Rung.ERROR,))).keeps_answers


def test_a_reload_reaches_the_answers() -> None:
    ladder = stocked()
    ladder.reconfigure(replace(CONFIG, answers=AnswersConfig(max_bytes=3, max_answer_bytes=3)))
    assert ladder.answers.view() == {"answers": 0, "bytes": 0}


@pytest.mark.parametrize("order", [(), (Rung.CACHE,), (Rung.ERROR, Rung.CACHE), (Rung.CACHE, Rung.CACHE, Rung.ERROR)])
def test_the_order_names_each_rung_once_and_ends_honestly(order: tuple[Rung, ...]) -> None:
    with pytest.raises(ValueError, match=r"ladder\.order"):
        LadderConfig(order=order)
