from __future__ import annotations

from collections import Counter
from itertools import pairwise
from pathlib import Path
from statistics import fmean

import pytest

from tidegate.errors import ConfigError
from tidegate.simulate.arrivals import client_bound
from tidegate.simulate.clients import Clients
from tidegate.simulate.clock import Clock
from tidegate.simulate.policies import path_config
from tidegate.simulate.report import report
from tidegate.simulate.run import simulate
from tidegate.simulate.scenarios import SCENARIO_HELP, SCENARIOS, find_scenario
from tidegate.simulate.stage import Stage, replicas_of

GENERATED = [name for name in SCENARIOS if name != "own-engine"]
"""What needs no file of the user's."""


@pytest.mark.parametrize("name", GENERATED)
def test_equal_seeds_give_equal_scenarios_in_order_of_time(name: str) -> None:
    scenario = find_scenario(name).build(7)
    assert scenario == find_scenario(name).build(7)
    assert scenario.demands != find_scenario(name).build(8).demands
    times = [demand.at for demand in scenario.demands]
    assert times == sorted(times)
    assert [demand.index for demand in scenario.demands] == list(range(len(times)))


@pytest.mark.parametrize("name", GENERATED)
def test_the_client_sends_a_bound_and_never_the_length_of_the_answer(name: str) -> None:
    demands = find_scenario(name).build(1).demands
    assert all(demand.max_tokens >= max(demand.output_tokens, 256) for demand in demands)
    assert {demand.max_tokens for demand in demands} <= {256, 512, 1024, 2048}


def test_every_scenario_has_a_line_of_help() -> None:
    assert SCENARIO_HELP.keys() == SCENARIOS.keys()


def test_the_campaign_steps_to_four_times_its_base_for_fifteen_seconds() -> None:
    scenario = find_scenario("campaign-bare").build(1)
    base_per_s = float(scenario.notes["base_per_s"])
    assert base_per_s == pytest.approx(0.6 * float(scenario.notes["capacity_per_s"]), rel=0.01)
    seconds = Counter(int(demand.at) for demand in scenario.demands)
    before = sum(seconds[second] for second in range(40)) / 40
    during = sum(seconds[second] for second in range(40, 55)) / 15
    after = sum(seconds[second] for second in range(55, 120)) / 65
    assert before == pytest.approx(base_per_s, rel=0.15)
    assert during == pytest.approx(4.2 * base_per_s, rel=0.1)
    assert after == pytest.approx(base_per_s, rel=0.15)
    labels = Counter(demand.label for demand in scenario.demands)
    assert labels["long"] / labels.total() == pytest.approx(0.2, abs=0.02)


def test_silence_is_followed_by_two_hundred_requests_in_one_second() -> None:
    times = [demand.at for demand in find_scenario("silence-then-200").build(1).demands]
    assert len(times) == 200
    assert min(times) >= 3.0
    assert max(times) < 4.0


@pytest.mark.parametrize(
    ("name", "step_s", "light"),
    [("campaign", 17.0, 2), ("campaign@one-light", 15.0, 1), ("retry-storm@light", 10.0, 2)],
)
def test_engines_of_a_lighter_model_stand_last_and_take_a_quarter_of_the_time(
    name: str, step_s: float, light: int
) -> None:
    scenario = find_scenario(name).build(1)
    assert scenario.burst is not None
    assert scenario.burst.end_s - scenario.burst.start_s == step_s
    assert scenario.models == ("model",) * 4 + ("light",) * light
    assert scenario.light_models == {"model": "light"}
    assert scenario.main_engines == scenario.engines[:4]
    lighter, main = scenario.engines[4].step, scenario.engines[0].step
    assert lighter.fixed_ps / main.fixed_ps == pytest.approx(0.25)
    assert lighter.prefill_ps / main.prefill_ps == pytest.approx(0.25)


def test_six_engines_meet_the_traffic_of_four() -> None:
    four, six = find_scenario("campaign").build(1), find_scenario("campaign@six").build(1)
    lengths = [[each.prompt_tokens for each in scenario.demands] for scenario in (four, six)]
    assert lengths[0] == lengths[1]
    assert six.demands[-1].at == pytest.approx(four.demands[-1].at)
    assert (len(six.engines), six.light_models) == (6, {})


def test_only_who_asks_for_them_gets_the_engines_of_a_lighter_model() -> None:
    scenario = find_scenario("agent-chain").build(1)
    clock = Clock()
    stage = Stage(scenario, 1, clock, Clients(clock, 2))
    assert [each.name for each in replicas_of(stage)] == ["retrieve-0", "plan-0", "tool-0", "answer-0"]
    light = replicas_of(stage, with_light=True)[4:]
    assert [each.model for each in light] == ["retrieve-light", "plan-light", "tool-light", "answer-light"]


def test_a_user_of_an_agent_has_four_calls_of_which_each_begins_with_the_one_before() -> None:
    scenario = find_scenario("agent-chain").build(1)
    first = scenario.demands[7]
    steps = [first]
    while (then := steps[-1].then) is not None:
        steps.append(then)
    assert [each.label for each in steps] == ["retrieve", "plan", "tool", "answer"]
    assert {each.chain for each in steps} == {7}
    assert len({each.index for each in steps}) == 4
    assert [each.at for each in steps[1:]] == [0.0] * 3


def test_the_evening_mixes_long_essays_in_and_the_fallback_loses_its_speed() -> None:
    essays = find_scenario("essay-peak").build(1)
    assert essays.burst is not None
    inside = [each for each in essays.demands if essays.burst.start_s <= each.at < essays.burst.end_s]
    labels = Counter(each.label for each in inside)
    assert labels["long"] / labels.total() == pytest.approx(0.19, abs=0.02)
    outside = essays.demands[: essays.demands.index(inside[0])]
    assert {each.label for each in outside} == {"short"}
    assert float(essays.notes["capacity_mixed_per_s"]) < 120 < float(essays.notes["capacity_short_per_s"])
    (fault,) = find_scenario("fallback").build(1).faults
    assert (fault.at, fault.replica, fault.factor) == (20.0, 0, 10.0)


def test_the_giant_comes_among_99_shorts_or_not_at_all() -> None:
    for variant, giants in (("", 1), ("@group", 1), ("@spread", 1), ("@without", 0)):
        demands = find_scenario(f"giant-and-99{variant}").build(1).demands
        labels = Counter(demand.label for demand in demands)
        assert (labels["short"], labels["giant"]) == (99, giants)
    shorts = [
        [
            (demand.at, demand.prompt_tokens)
            for demand in find_scenario(name).build(1).demands
            if demand.label == "short"
        ]
        for name in ("giant-and-99", "giant-and-99@without")
    ]
    assert shorts[0] == shorts[1]


def test_a_replay_can_run_faster_and_keeps_its_lengths() -> None:
    once, thrice = (find_scenario(name).build(1) for name in ("azure-conv", "azure-conv@3"))
    assert [demand.prompt_tokens for demand in once.demands] == [demand.prompt_tokens for demand in thrice.demands]
    assert thrice.demands[-1].at == pytest.approx(once.demands[-1].at / 3)


def test_a_replay_reads_the_folder_that_the_user_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "azure-2023"
    folder.mkdir()
    rows = "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:00:00.5,3000,7\n2023-11-16 18:00:02.5,10,300\n"
    (folder / "AzureLLMInferenceTrace_conv.csv").write_text(rows, encoding="utf-8")
    monkeypatch.setenv("TIDEGATE_TRACES", str(tmp_path))
    scenario = find_scenario("azure-conv@2").build(1)
    assert [(demand.at, demand.label, demand.max_tokens) for demand in scenario.demands] == [
        (0.0, "long", 256),
        (1.0, "short", 512),
    ]
    assert scenario.source == "trace azure-2023/AzureLLMInferenceTrace_conv.csv"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("stedy", "did you mean steady"),
        ("nothing-like-it", "known: steady"),
        ("steady@", None),
        ("steady@-1", "number above 0"),
        ("azure-conv@fast", "number above 0"),
        ("azure-conv@inf", "number above 0"),
        ("giant-and-99@twice", "choose one of giant-and-99@group"),
        ("campaign-bare@2", "choose one of campaign-bare, campaign-bare@heedless"),
        ("essay-peak@2", "at most 1"),
        ("agent-chain@0", "number above 0"),
        ("fallback@2", "takes no argument"),
        ("campaign@two", "choose one of campaign, campaign@one-light"),
        ("silence-then-200@2", "choose one of silence-then-200"),
    ],
)
def test_a_name_that_is_not_known_is_answered_with_what_is(name: str, message: str | None) -> None:
    if message is None:
        assert find_scenario(name).build(1).name == "steady@0.75"
        return
    with pytest.raises(ConfigError, match=message):
        find_scenario(name)


@pytest.mark.parametrize(("output_tokens", "bound"), [(1, 256), (256, 256), (257, 512), (1000, 1024), (1025, 2048)])
def test_bounds_are_powers_of_two(output_tokens: int, bound: int) -> None:
    assert client_bound(output_tokens) == bound


def test_half_of_a_mix_is_relaxed_and_says_so() -> None:
    scenario = find_scenario("mixed-2x").build(1)
    assert scenario.name == "mixed-2x"
    counts = Counter((demand.class_hint, demand.label, demand.ttft_slo_s) for demand in scenario.demands)
    assert set(counts) == {("interactive", "interactive", 1.5), ("relaxed", "relaxed", 20.0)}
    assert counts["relaxed", "relaxed", 20.0] / counts.total() == pytest.approx(0.5, abs=0.03)
    plain = find_scenario("azure-conv@2").build(1)
    assert [demand.prompt_tokens for demand in scenario.demands] == [demand.prompt_tokens for demand in plain.demands]
    assert len(find_scenario("mixed@1").build(1).demands) == len(scenario.demands)


def test_clients_of_a_storm_come_back_at_once_and_its_zombies_do_not_notice() -> None:
    storm, zombie, heeding = (
        find_scenario(name).build(1) for name in ("retry-storm", "retry-storm@zombie", "retry-storm@heeding")
    )
    assert storm.demands == zombie.demands
    assert {demand.retry_delay_s for demand in storm.demands} == {0.0}
    assert (storm.tries, storm.heeds_retry_after, heeding.heeds_retry_after) == (4, False, True)
    assert [engine.notices_aborts for engine in zombie.engines] == [False] * 4
    assert [engine.notices_aborts for engine in storm.engines] == [True] * 4


def test_one_of_six_engines_is_slower_under_a_closed_loop_unless_all_are_equal() -> None:
    slow, equal = find_scenario("jitter").build(1), find_scenario("jitter@equal").build(1)
    steps = [engine.step.fixed_ps for engine in slow.engines]
    assert steps[-1] == pytest.approx(1.5 * steps[0])
    assert len(set(steps[:-1])) == len({engine.step for engine in equal.engines}) == 1
    assert slow.loop is not None
    assert slow.loop.users == 100


def test_a_replay_may_have_more_engines_or_slower_ones() -> None:
    names = ("azure-conv", "azure-conv@1/slow", "azure-conv@2/3")
    plain, slow, three = (find_scenario(name).build(1) for name in names)
    assert slow.engines[0].step == plain.engines[0].step.slowed(1.25)
    assert (slow.name, three.name) == ("azure-conv@1/slow", "azure-conv@2/3")
    assert len(three.engines) == 3
    with pytest.raises(ConfigError, match="expected /slow, /cached or a number"):
        find_scenario("azure-conv@1/quick")


def test_one_of_four_steady_engines_may_be_slower_and_half_an_hour_may_be_asked_for() -> None:
    slow, long = find_scenario("steady@0.6/one-slow").build(1), find_scenario("steady@0.6/long").build(1)
    assert [engine.step == slow.engines[0].step for engine in slow.engines] == [True, True, True, False]
    assert slow.engines[3].step == slow.engines[0].step.slowed(1.5)
    assert (slow.name, long.name) == ("steady@0.6/one-slow", "steady@0.6/long")
    assert long.demands[-1].at == pytest.approx(1800.0, abs=2.0)
    assert {demand.patience_s for demand in long.demands} == {7.0}


def test_a_thousand_questions_a_second_meet_engines_that_carry_a_quarter_of_them() -> None:
    scenario, without = find_scenario("burst-1000").build(1), find_scenario("burst-1000@without").build(1)
    assert float(scenario.notes["capacity_per_s"]) == pytest.approx(250.0, rel=0.05)
    in_burst = [demand for demand in scenario.demands if 20.0 <= demand.at < 30.0]
    assert len(in_burst) == pytest.approx(10_000, rel=0.05)
    questions = [demand for demand in scenario.demands if demand.label == "question"]
    assert sum(demand.prompt_tokens for demand in questions) / len(questions) == pytest.approx(200, rel=0.02)
    contracts = [demand.prompt_tokens for demand in scenario.demands if demand.label == "contract"]
    assert min(contracts) >= 2000
    assert len(contracts) / len(scenario.demands) == pytest.approx(0.02, abs=0.005)
    assert [demand.at for demand in without.demands] == [demand.at for demand in questions]


def test_frames_come_25_times_a_second_from_each_stream_and_are_worthless_soon() -> None:
    demands = find_scenario("video-12").build(1).demands
    assert len(demands) == 12 * 25 * 60
    first = [demand.at for demand in demands if demand.tenant == "stream-0"]
    gaps = [after - before for before, after in pairwise(first)]
    assert gaps == pytest.approx([0.04] * len(gaps))
    assert {demand.worthless_after_s for demand in demands} == {0.2}
    steps = [demand.output_tokens for demand in demands]
    assert sum(steps) / len(steps) * 4 == pytest.approx(120, rel=0.01)
    assert len({demand.tenant for demand in find_scenario("video-12@24").build(1).demands}) == 24
    with pytest.raises(ConfigError, match="expected a number of streams"):
        find_scenario("video-12@many")


def test_tenants_weigh_what_they_usually_ask_for_where_a_policy_is_told_their_shares() -> None:
    """By work, not by calls; what a greedy one sends on top of that is not agreed."""
    calm, greedy = find_scenario("servegen@0.5").build(1), find_scenario("servegen@0.5/greedy").build(1)
    assert calm.shares == greedy.shares
    assert {demand.tenant for demand in greedy.demands} <= set(greedy.shares)
    clock = Clock()
    stage = Stage(greedy, 1, clock, Clients(clock, greedy.tries))
    told, alike = (path_config(stage, replicas_of(stage), words).tenants for words in ({"shares"}, set[str]()))
    weights = {name: told.weight_of(name) for name in greedy.shares}
    assert fmean(weights.values()) == pytest.approx(1.0)
    most, least = (pick(greedy.shares, key=greedy.shares.__getitem__) for pick in (max, min))
    assert weights[most] / weights[least] == pytest.approx(greedy.shares[most] / greedy.shares[least])
    assert {alike.weight_of(name) for name in greedy.shares} == {1.0}


def test_others_do_the_same_whether_or_not_one_tenant_is_greedy() -> None:
    calm, greedy = find_scenario("servegen@0.5").build(1), find_scenario("servegen@0.5/greedy").build(1)
    name = calm.notes["average_tenant"]
    others = [
        [(demand.at, demand.tenant, demand.prompt_tokens) for demand in scenario.demands if demand.tenant != name]
        for scenario in (calm, greedy)
    ]
    assert others[0] == others[1]
    rates = [sum(demand.tenant == name and demand.at >= 60.0 for demand in each.demands) for each in (calm, greedy)]
    assert rates[1] > 20 * rates[0]
    assert {demand.label for demand in calm.demands} == {"average", "others"}
    assert len({demand.tenant for demand in calm.demands}) > 40
    with pytest.raises(ConfigError, match="expected /greedy"):
        find_scenario("servegen@1/mean")


def test_the_ladder_sends_a_model_s_long_waits_to_its_lighter_one_and_needs_one() -> None:
    found = report(simulate("silence-then-200@light", "tidegate:ladder", 1))
    without = report(simulate("silence-then-200@light", "tidegate", 1))
    assert found["degraded"] > 0
    assert without["degraded"] == 0
    assert found["errors"]["total"] <= without["errors"]["total"]
    with pytest.raises(ConfigError, match="no engine of a lighter model"):
        simulate("silence-then-200", "tidegate:ladder", 1)
