"""Every named plan builds, sends sound requests, and can be made smaller."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from itertools import islice, pairwise

import pytest

from tidegate.errors import ConfigError
from tidegate.load.ask import Ask
from tidegate.load.manifest import manifest
from tidegate.load.named_plans import PLAN_HELP, PLANS, SUITE, find_plan, find_suite
from tidegate.load.phase import Kind, Phase
from tidegate.load.plan import Plan
from tidegate.load.plan_options import PlanOptions
from tidegate.load.workloads.overlong import OVERLONG
from tidegate.load.workloads.recipe import Nonce
from tidegate.simulate.scenarios import SCENARIOS

OPTIONS = PlanOptions(context_tokens=8192)
QUICK_SCENARIOS = ("giant-and-99", "silence-then-200", "mooncake", "agent-chain", "jitter", "mixed", "sessions")


def phase_of(plan: Plan, name: str) -> Phase:
    (found,) = [phase for phase in plan.phases if phase.name == name]
    return found


def sent(phase: Phase, count: int = 200, seed: int = 0) -> list[Ask]:
    return [*islice(phase.source.asks(seed), count)]


def check(plan: Plan) -> None:
    names = [phase.name for phase in plan.phases]
    assert len(set(names)) == len(names)
    for phase in plan.phases:
        found = sent(phase, 60)
        assert found
        assert phase.duration_s > 0
        assert (phase.users is None) is (phase.rate_per_s is not None)
        assert [ask.due_s for ask in found] == sorted(ask.due_s for ask in found)
        assert sent(pickle.loads(pickle.dumps(phase)), 60) == found
        for ask in found:
            if ask.label not in {"no-json", "characters"}:
                json.loads(b'{"model":"m"' + ask.body)


@pytest.mark.parametrize("name", PLANS)
def test_a_named_plan_builds_and_sends(name: str) -> None:
    check(find_plan(name, OPTIONS))


@pytest.mark.parametrize("name", PLANS)
def test_a_named_plan_stays_a_plan_when_it_is_made_small(name: str) -> None:
    options = replace(OPTIONS, scale=0.02, time_scale=0.02)
    plan = find_plan(name, options)
    assert [phase.name for phase in plan.phases]
    assert all(phase.users is None or phase.users >= 1 for phase in plan.phases)
    assert "x 0.02" in plan.notes["scale"]
    assert "x 0.02" in plan.notes["time_scale"]


@pytest.mark.parametrize("name", QUICK_SCENARIOS)
def test_a_scenario_is_a_plan_too(name: str) -> None:
    plan = find_plan(name, replace(OPTIONS, time_scale=0.2))
    check(plan)
    assert plan.notes["scenario"].startswith(plan.name)


def test_every_name_has_its_help_and_every_scenario_is_among_them() -> None:
    assert set(PLAN_HELP) >= {*PLANS, *SCENARIOS, "replay", "scenario"}
    assert set(SUITE) <= set(PLANS)


def test_the_three_phases_stand_in_their_order() -> None:
    plan = find_plan("three-phase@3", OPTIONS)
    kinds = [phase.kind for phase in plan.phases]
    assert kinds == [Kind.SINGLE, *[Kind.STEP] * 5, Kind.BURST, Kind.SOAK]
    assert [phase.users for phase in plan.phases] == [1, 10, 50, 100, 200, 500, None, None]
    single, soak, burst = plan.phases[0], phase_of(plan, "soak"), phase_of(plan, "burst")
    assert (single.count, soak.duration_s) == (1000, 1800.0)
    assert soak.rate_per_s == pytest.approx(3.0)
    assert burst.spike == (60.0, 120.0)
    found = [ask.due_s for ask in burst.source.asks(0)]
    inside = sum(60 <= due_s < 120 for due_s in found)
    assert inside / 60 == pytest.approx(6.0, rel=0.25)
    assert all(ask.keeps_text for ask in sent(single, 5))


def test_burst_and_soak_follow_the_peak_that_the_ramp_finds_and_scaling_is_not_done_twice() -> None:
    plan = find_plan("three-phase", replace(OPTIONS, scale=0.1))
    assert {phase.kind for phase in plan.phases} == {Kind.SINGLE, Kind.STEP}
    assert plan.after_peak is not None
    burst, soak = plan.after_peak(10.0)
    assert (burst.kind, soak.kind) == (Kind.BURST, Kind.SOAK)
    assert soak.rate_per_s == pytest.approx(7.0)


def test_a_quick_look_finds_its_own_rate() -> None:
    plan = find_plan("quick", OPTIONS)
    assert [phase.users for phase in plan.phases] == [2]
    assert plan.after_peak is not None
    (then,) = plan.after_peak(1.0)
    assert then.rate_per_s == pytest.approx(0.7)
    assert then.duration_s == 40.0
    assert [phase.rate_per_s for phase in find_plan("quick@3", OPTIONS).phases] == [pytest.approx(3.0)]


def test_the_same_question_is_the_same_each_time() -> None:
    plan = find_plan("consistency", OPTIONS)
    assert [(phase.users, phase.count) for phase in plan.phases] == [(1, 100), (20, 400), (1, 100)]
    for phase in plan.phases:
        found = sent(phase, 50)
        assert len({ask.body for ask in found}) == 1
        assert all(ask.keeps_text for ask in found)
    assert all(ask.wants_json for ask in sent(plan.phases[2], 5))
    other = find_plan("consistency", replace(OPTIONS, nonce=Nonce.END))
    assert len({ask.body for ask in sent(other.phases[0], 50)}) == 50


def test_steps_that_scaling_makes_equal_are_one() -> None:
    steps = [phase.users for phase in find_plan("rag-3k", replace(OPTIONS, scale=0.01)).phases]
    assert steps == [1, 2, 5]


def test_a_soak_hides_over_long_prompts_by_their_share() -> None:
    found = sent(phase_of(find_plan("acceptance", OPTIONS), "soak"), 2000)
    over_long = [ask for ask in found if ask.label == OVERLONG]
    assert len(over_long) / len(found) == pytest.approx(0.05, abs=0.015)
    assert all(ask.prompt_tokens > 8192 and ask.refusal is not None for ask in over_long)
    others = [ask for ask in found if ask.label != OVERLONG]
    assert all(ask.prompt_tokens + (ask.max_tokens or 0) <= 8192 and ask.refusal is None for ask in others)


def test_without_a_known_context_there_are_none_and_the_notes_say_so() -> None:
    plan = find_plan("acceptance", PlanOptions())
    assert all(ask.label != OVERLONG for ask in sent(phase_of(plan, "soak"), 500))
    assert plan.notes["over_long"].startswith("none")
    assert plan.notes["context"] == "not known"


def test_over_long_prompts_may_be_meant_to_be_answered_or_left_out() -> None:
    answered = find_plan("acceptance", replace(OPTIONS, is_overlong_answered=True))
    over_long = [ask for ask in sent(phase_of(answered, "soak"), 500) if ask.label == OVERLONG]
    assert over_long
    assert all(ask.refusal is None for ask in over_long)
    assert "an answer" in answered.notes["over_long"]
    without = find_plan("acceptance", replace(OPTIONS, overlong_share=0.0))
    assert all(ask.label != OVERLONG for ask in sent(phase_of(without, "soak"), 500))


def test_options_reach_every_request() -> None:
    options = replace(
        OPTIONS,
        max_prompt_tokens=300,
        max_output_tokens=20,
        nonce=Nonce.NONE,
        stream_share=0.0,
        deadline_ms=900,
        ignores_eos=True,
        tenant_keys={"desk": "sk-desk"},
        wants_codes=False,
    )
    plan = find_plan("multi-tenant", options)
    found = sent(plan.phases[0], 300)
    assert all(ask.prompt_tokens <= 300 and (ask.max_tokens or 0) <= 20 for ask in found)
    assert not any(ask.is_stream for ask in found)
    assert all(("x-tidegate-deadline-ms", "900") in ask.headers for ask in found)
    assert all(b'"ignore_eos":true' in ask.body for ask in found)
    for ask in found:
        assert (("authorization", "Bearer sk-desk") in ask.headers) is (ask.tenant == "desk")
    assert "none for app, reports, noisy" in plan.notes["keys"]
    assert {"prompts", "answers", "nonce", "streams", "deadline", "ignore_eos"} <= set(plan.notes)
    soak = phase_of(find_plan("acceptance", options), "soak")
    refusals = [ask.refusal for ask in sent(soak, 500) if ask.refusal is not None]
    assert refusals
    assert all(not refusal.codes and 422 in refusal.statuses for refusal in refusals)


def test_one_tenant_is_noisy_for_a_third_of_the_time() -> None:
    plan = find_plan("multi-tenant", OPTIONS)
    phase = plan.phases[0]
    assert phase.spike == (300.0, 600.0)
    noisy = [ask.due_s for ask in phase.source.asks(0) if ask.tenant == "noisy"]
    inside, outside = sum(300 <= due_s < 600 for due_s in noisy), sum(not 300 <= due_s < 600 for due_s in noisy)
    assert inside / 300 > 12 * outside / 600
    assert set(plan.objectives) == {"desk", "app", "reports", "noisy"}


def test_video_streams_keep_their_beat_and_say_their_deadline() -> None:
    found = sent(find_plan("video-12", OPTIONS).phases[0], 600)
    assert {ask.tenant for ask in found} == {f"stream-{place}" for place in range(12)}
    first = [ask.due_s for ask in found if ask.tenant == "stream-3"]
    assert all(abs(later - earlier - 0.04) < 1e-9 for earlier, later in pairwise(first))
    assert all(("x-tidegate-deadline-ms", "200") in ask.headers for ask in found)


def test_an_agents_calls_come_at_the_rate_of_half_a_million_dialogues_a_day() -> None:
    plan = find_plan("agent-500k-day", OPTIONS)
    assert plan.phases[0].rate_per_s == pytest.approx(4 * 500_000 / 86_400)


def test_all_summaries_come_at_once() -> None:
    release = phase_of(find_plan("finance-300", OPTIONS), "release")
    assert [ask.due_s for ask in release.source.asks(0)] == [0.0] * 300


def test_lengths_that_do_not_fit_are_left_out_and_named() -> None:
    plan = find_plan("long-context", OPTIONS)
    assert {ask.prompt_tokens for ask in sent(plan.phases[0])} == {1000, 2000, 5000}
    assert plan.notes["left_out"].startswith("10000, 20000")
    assert find_plan("long-context", PlanOptions()).notes["left_out"] == "nothing"
    tiny = find_plan("long-context", PlanOptions(context_tokens=512))
    assert {ask.prompt_tokens for ask in sent(tiny.phases[0])} == {512 - 32 - 64}


def test_the_suite_is_every_plan_with_one_seed() -> None:
    plans = find_suite(replace(OPTIONS, seed=9))
    assert [plan.name for plan in plans] == [*SUITE]
    assert {plan.seed for plan in plans} == {9}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("three-fase", 'did you mean "three-phase"'),
        ("zzz", "known: three-phase"),
        ("three-phase@fast", "expected a number above 0"),
        ("rag-3k@4", "takes no argument"),
        ("replay", "write replay@FILE"),
        ("scenario", "write scenario@NAME"),
        ("scenario@nope", "unknown scenario"),
        ("missing.yaml", "No such file"),
        ("replay@missing.jsonl", "No such file"),
    ],
)
def test_a_wrong_name_or_argument_is_told(text: str, said: str) -> None:
    with pytest.raises(ConfigError) as error:
        find_plan(text, OPTIONS)
    assert said in str(error.value)


def test_two_runs_can_be_shown_to_have_sent_the_same() -> None:
    one, same = (manifest(find_plan("quick@2", OPTIONS)) for _ in range(2))
    assert one == same
    other = manifest(find_plan("quick@2", replace(OPTIONS, seed=1)))
    assert one["phases"][0]["sha256"] != other["phases"][0]["sha256"]
    assert one["phases"][0]["is_whole"] is True
    assert set(one["made_by"]) == {"tidegate", "python", "platform"}
