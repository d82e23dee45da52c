"""Plan files: the example is read whole, and every mistake is told at once with its place."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest
from pydantic import BaseModel

from tidegate.config.parameters import Shape
from tidegate.errors import ConfigError
from tidegate.load.named_plans import find_plan
from tidegate.load.phase import Kind
from tidegate.load.plan import Objective, Plan
from tidegate.load.plan_file import read_plan
from tidegate.load.plan_options import PlanOptions
from tidegate.load.plan_sections import PlanSection

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "load-plan.yaml"
OPTIONS = PlanOptions(context_tokens=8192)
TOLD = """plan.yaml:2:1: objektive: unknown key (did you mean "objective"?)
plan.yaml:4:59: workloads.chat.output_tokens: must be a whole number of tokens, or a mapping such as \
{uniform: [100, 300]}, got 'ten'
plan.yaml:4:35: workloads.chat.prompt_tokens.uniform: the first must not be above the second, got [5, 2]
plan.yaml:5:9: workloads.none: needs prompt_tokens, prompts or text
plan.yaml:6:32: workloads.both.prompts: no.jsonl: No such file or directory
plan.yaml:6:16: workloads.both.text: prompts and text exclude each other
plan.yaml:7:60: workloads.odd.nonce: must be 'start', 'end' or 'none', got 'middle'
plan.yaml:7:24: workloads.odd.prompt_tokens: give a number, or one of fixed, uniform, lognormal, values, trace, mix
plan.yaml:10:21: phases[0].send: no workload is called 'chatt' (did you mean "chat"?)
plan.yaml:11:5: phases[1]: needs one of rate_per_s, users, steps, replay, found rate_per_s and users
plan.yaml:12:5: phases[2].duration_s: is required
plan.yaml:13:76: phases[3].rate_per_s.spike.window_s: must begin before it ends, within the phase's 60 s
plan.yaml:14:39: phases[4].rate_per_s: nothing is ever sent: give a rate above 0 somewhere
plan.yaml:15:33: phases[5].send: leave it out: the file says what is sent
plan.yaml:16:39: phases[6].rate_per_s: give a number, or one of at (with spike, if wanted), ramp, day, pieces
plan.yaml:17:5: phases[7]: needs one of rate_per_s, users, steps, replay
plan.yaml:18:57: phases[8].duration_s: must be more than 0.0, got 0
plan.yaml:18:39: phases[8].rate_per_s: must be a number, or a mapping such as {ramp: [1, 5]}, got 'fast'
plan.yaml:19:45: phases[9].count: goes with users only
plan.yaml:19:5: phases[9].send: is required: the name of a workload
plan.yaml:20:90: phases[10].duration_s: leave it out: its pieces say how long the phase is
"""


def read(text: str, tmp_path: Path, options: PlanOptions = OPTIONS) -> Plan:
    path = tmp_path / "plan.yaml"
    path.write_text(text)
    return read_plan(path, options)


def problems(text: str, tmp_path: Path) -> list[str]:
    with pytest.raises(ConfigError) as error:
        read(text, tmp_path)
    return [problem.replace(f"{tmp_path}/", "") for problem in error.value.problems]


def keys_of(shape: Shape) -> Iterator[str]:
    model = shape.model()
    if model is None or not issubclass(model, BaseModel):
        return
    for name in model.model_fields:
        yield name
        child = shape.child(name)
        if child is not None and name != "mix":
            inner = child.child(0) if child.is_list() else child.child("x") if child.is_table() else child
            yield from keys_of(inner) if inner is not None else ()


def test_the_example_is_a_whole_plan() -> None:
    plan = find_plan(str(EXAMPLE), OPTIONS)
    assert plan.name == "customer-service"
    assert plan.objective == Objective(ttft_s=2.0, tpot_s=0.1, e2e_s=10)
    assert plan.objectives["gold"] == Objective(ttft_s=0.8)
    assert plan.notes["gates"] == "acceptance"
    assert (plan.notes["planned_rate_per_s"], plan.notes["real_peak_per_s"]) == ("3", "4")
    by_name = {phase.name: phase for phase in plan.phases}
    assert [*by_name] == [
        "single", "users-2", "users-5", "users-10", "users-20", "burst", "morning", "day", "in-pieces", "soak",
        "last-friday",
    ]  # fmt: skip
    kinds = {phase.kind for phase in plan.phases}
    assert kinds == set(Kind)
    assert by_name["burst"].spike == (60.0, 120.0)
    assert by_name["in-pieces"].duration_s == 70.0
    soak = [*islice(by_name["soak"].source.asks(0), 600)]
    assert {ask.label for ask in soak} == {"chat", "help-desk", "reports", "blank", "over-long"}
    refused = {ask.label for ask in soak if ask.refusal is not None}
    assert refused == {"blank", "over-long"}
    blank = next(ask for ask in soak if ask.label == "blank")
    assert json.loads(b'{"model":"m"' + blank.body)["messages"][0]["content"].strip() == ""


def test_the_example_says_every_key_that_there_is() -> None:
    text = EXAMPLE.read_text()
    missing = {key for key in keys_of(Shape(PlanSection)) if not re.search(rf"\b{key}\b", text)}
    assert missing == set()


def test_the_page_explains_every_key() -> None:
    text = (ROOT / "docs" / "load-plans.md").read_text()
    assert {key for key in keys_of(Shape(PlanSection)) if f"`{key}`" not in text} == set()


def test_scaling_is_of_rates_users_and_times(tmp_path: Path) -> None:
    plan = find_plan(str(EXAMPLE), replace(OPTIONS, scale=0.5, time_scale=0.1))
    by_name = {phase.name: phase for phase in plan.phases}
    assert [phase.users for phase in plan.phases if phase.kind is Kind.STEP] == [1, 2, 5, 10]
    assert by_name["soak"].rate_per_s == pytest.approx(1.0)
    assert by_name["soak"].duration_s == pytest.approx(180.0)
    assert by_name["burst"].spike == pytest.approx((6.0, 12.0))
    assert by_name["single"].count == 20


def test_every_mistake_is_told_at_once(tmp_path: Path) -> None:
    text = """name: x
objektive: {ttft_s: 1}
workloads:
  chat: {prompt_tokens: {uniform: [5, 2]}, output_tokens: ten}
  none: {}
  both: {text: hello, prompts: no.jsonl}
  odd: {prompt_tokens: {fixed: 1, uniform: [1, 2]}, nonce: middle}
  fine: {prompt_tokens: 20}
phases:
  - {name: a, send: chatt, users: 1, duration_s: 3}
  - {name: a, send: fine, users: 1, rate_per_s: 2, duration_s: 3}
  - {name: c, send: fine, users: 1}
  - {name: d, send: fine, rate_per_s: {at: 1, spike: {factor: 2, window_s: [5, 90]}}, duration_s: 60}
  - {name: e, send: fine, rate_per_s: {ramp: [0, 0]}, duration_s: 60}
  - {name: f, replay: no.jsonl, send: fine}
  - {name: g, send: fine, rate_per_s: {ramp: [0, 1], at: 3}, duration_s: 60}
  - {name: h}
  - {name: i, send: fine, rate_per_s: fast, duration_s: 0}
  - {name: j, rate_per_s: 1, duration_s: 5, count: 4}
  - {name: k, send: fine, rate_per_s: {pieces: [{for_s: 5, from_per_s: 1}]}, duration_s: 5}
"""
    assert "\n".join(problems(text, tmp_path)) + "\n" == TOLD


def test_two_phases_of_one_name_are_told(tmp_path: Path) -> None:
    text = "name: x\nworkloads: {a: {prompt_tokens: 9}}\nphases:\n"
    text += "  - {name: p, send: a, users: 1, duration_s: 3}\n" * 2
    assert problems(text, tmp_path) == [
        "plan.yaml:4:12: phases[0].name: another phase is called 'p' too",
        "plan.yaml:5:12: phases[1].name: another phase is called 'p' too",
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("name: [", "not valid YAML"),
        ("", "name: is required"),
        ("name: x\nphases: []\n", "phases: must hold at least 1"),
        ("name: x\nphases: [{name: a, replay: no.jsonl}]", "phases[0].replay: "),
        ("name: x\nphases: [{name: a, replay: no.jsonl, duration_s: 3}]", "leave it out: the file says how long"),
        ("name: x\nworkloads: {a: {prompts: p, prompt_tokens: 3}}\nphases: [{name: a}]", "the file says all of it"),
        ("name: x\nphases: [{name: a, send: b, users: 1, duration_s: 2}]", "known: none"),
    ],
)
def test_a_mistake_is_told_in_words(text: str, said: str, tmp_path: Path) -> None:
    assert any(said in problem for problem in problems(text, tmp_path))


def test_a_rate_of_the_command_has_no_meaning_for_a_file() -> None:
    with pytest.raises(ConfigError, match="rates of its own"):
        read_plan(EXAMPLE, replace(OPTIONS, rate_per_s=3.0))


def test_a_missing_trace_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEGATE_TRACES", str(tmp_path))
    text = "name: x\nworkloads: {a: {prompt_tokens: {trace: mooncake}}}\n"
    text += "phases: [{name: p, send: a, users: 1, duration_s: 1}]\n"
    (found,) = problems(text, tmp_path)
    assert found.startswith("plan.yaml:2:40: workloads.a.prompt_tokens.trace: TIDEGATE_TRACES")


def test_over_long_requests_without_a_known_context_are_left_out_and_that_is_said() -> None:
    plan = find_plan(str(EXAMPLE), PlanOptions())
    assert plan.notes["over_long"].startswith("none")
