"""The corpus of abnormal requests against the real gateway, in memory and in virtual time."""

from __future__ import annotations

from itertools import islice

import pytest

from tests.gateway.stand import WHOLE, Engine, json_answer, stand_for
from tidegate.load.ask import Ask
from tidegate.load.plan_options import PlanOptions
from tidegate.load.plans.oddities import abnormal
from tidegate.load.request_text import RequestText
from tidegate.load.target import Target
from tidegate.load.workloads.abnormal_case import AbnormalCase
from tidegate.load.workloads.abnormal_corpus import cases_by_code, corpus
from tidegate.load.workloads.abnormal_rounds import PROBE, AbnormalRounds
from tidegate.policy.reading import Capacity
from tidegate.testing.virtual_loop import run_virtually

CONTEXT = 2048
LOST = json_answer({"error": {"message": "no such path"}}, "404 Not Found")
TEXT = RequestText(Target(name="t", url="http://gate/v1", model="m"))


def engine() -> Engine:
    """Answers every chat, and knows no other path."""
    return Engine(lambda request: [WHOLE if request.target == b"/v1/chat/completions" else LOST])


def ask_of(case: AbnormalCase) -> Ask:
    return Ask(index=0, label=case.group, body=case.body, path=case.path, headers=case.headers)


@pytest.mark.parametrize("case", corpus(CONTEXT), ids=lambda case: f"{case.group}/{case.name}")
def test_the_gateway_gives_each_the_answer_that_it_must_get(case: AbnormalCase) -> None:
    async def main() -> None:
        with stand_for(engine(), capacity=Capacity(sequences=64, context_tokens=CONTEXT)) as stand:
            got = await stand.ask(TEXT.of(ask_of(case)))
            refusal = case.refusal
            if refusal is None:
                assert got.status == 200
            elif got.status == 200:
                assert refusal.may_answer
            else:
                assert got.status in refusal.statuses
                assert not refusal.codes or got.error.get("code") in refusal.codes
            assert (await stand.ask(TEXT.of(ask_of(PROBE)))).status == 200
            assert stand.permits == 0

    run_virtually(main())


def test_every_other_request_is_a_sound_one() -> None:
    source = AbnormalRounds(context_tokens=CONTEXT)
    asked = [*islice(source.asks(0), source.round_length() + 1)]
    assert [ask.index for ask in asked] == [*range(source.round_length() + 1)]
    assert {ask.label for ask in asked[1::2]} == {"probe"}
    assert all(ask.refusal is None for ask in asked[1::2])
    assert {ask.extra["case"] for ask in asked[::2]} == {case.name for case in corpus(CONTEXT)}
    assert asked[-1] == Ask(**{**{name: getattr(asked[0], name) for name in Ask.__slots__}, "index": asked[-1].index})


def test_without_a_known_context_nothing_is_over_long() -> None:
    assert "over-long" in {case.group for case in corpus(CONTEXT)}
    assert "over-long" not in {case.group for case in corpus(None)}
    assert abnormal(PlanOptions()).notes["over_long"].startswith("none")


def test_names_are_unique() -> None:
    names = [case.name for case in corpus(CONTEXT)]
    assert len(set(names)) == len(names)


def test_what_a_target_cannot_say_is_not_asked_of_it() -> None:
    bare = AbnormalRounds(context_tokens=CONTEXT, is_overlong_answered=True, wants_codes=False)
    for case in bare.cases():
        assert case.refusal is None or (not case.refusal.codes and 422 in case.refusal.statuses)
        assert case.group != "over-long" or case.refusal is None


def test_a_code_finds_a_request_that_gets_it() -> None:
    found = cases_by_code()
    assert set(found) == {"empty_input", "invalid_chars", "invalid_json", "invalid_value"}
    assert found["invalid_chars"].name == "nul"
    assert found["invalid_json"].group == "no-json"
    assert found["empty_input"].group == "empty"


def test_the_plan_sends_all_of_them_in_each_round() -> None:
    plan = abnormal(PlanOptions(context_tokens=CONTEXT))
    assert plan.phases[0].count == 3 * 2 * len(corpus(CONTEXT))
    assert abnormal(PlanOptions(time_scale=0.01)).phases[0].count == 2 * len(corpus(None))
    assert plan.phases[0].source.salted("x") is plan.phases[0].source
    assert f"{len(corpus(CONTEXT))} abnormal" in plan.phases[0].source.title
