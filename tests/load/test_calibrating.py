from __future__ import annotations

from itertools import islice

from tidegate.load.plan_options import PlanOptions
from tidegate.load.plans.calibrating import calibration


def test_one_after_the_other_of_four_lengths_then_more_and_more_at_once() -> None:
    plan = calibration(PlanOptions(seed=3, context_tokens=4096))
    assert [phase.users for phase in plan.phases] == [1, 2, 4, 8]
    assert [phase.name for phase in plan.phases] == [f"calibration-{users}" for users in (1, 2, 4, 8)]
    singles = list(islice(plan.phases[0].source.asks(3), 60))
    assert {ask.prompt_tokens for ask in singles} == {32, 128, 512, 1365}


def test_prompts_fit_the_context_and_begin_with_words_of_their_own() -> None:
    plan = calibration(PlanOptions(context_tokens=1024, ignores_eos=True))
    for phase in plan.phases:
        asks = list(islice(phase.source.asks(1), 80))
        assert max(ask.prompt_tokens + (ask.max_tokens or 0) for ask in asks) < 1024
        assert len({ask.body[:80] for ask in asks}) == len(asks)
        assert all(b'"ignore_eos":true' in ask.body for ask in asks)


def test_a_target_that_does_not_tell_its_context_gets_short_prompts() -> None:
    plan = calibration(PlanOptions(time_scale=0.5))
    assert max(ask.prompt_tokens for ask in islice(plan.phases[0].source.asks(0), 40)) == 2048 // 3
    assert plan.phases[1].duration_s == 20.0
