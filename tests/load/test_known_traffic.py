"""Scenarios and replayed files: their times and lengths, with words of our own."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tidegate.errors import ConfigError
from tidegate.load.ask import Ask
from tidegate.load.client_outcome import ClientOutcome
from tidegate.load.phase import Kind
from tidegate.load.plan_options import PlanOptions
from tidegate.load.plans.known_traffic import replay_plan, scenario_plan
from tidegate.load.sample import Sample
from tidegate.load.workloads.filler import NONCE_WORDS
from tidegate.load.workloads.overlong import REFUSAL
from tidegate.load.workloads.recipe import Nonce
from tidegate.load.workloads.replay_file import read_rows
from tidegate.load.workloads.traffic_row import TrafficRow, stretched
from tidegate.simulate.scenarios import find_scenario

OPTIONS = PlanOptions()
EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "load-traffic.jsonl"


def sent_by(plan_name: str, options: PlanOptions = OPTIONS) -> list[Ask]:
    plan = scenario_plan(plan_name, options)
    return [*plan.phases[0].source.asks(0)]


def words(ask: Ask) -> list[str]:
    messages = json.loads(b'{"model":"m"' + ask.body)["messages"]
    return " ".join(message["content"] for message in messages).split()


def test_a_scenarios_times_and_lengths_are_those_of_its_demands() -> None:
    demands = find_scenario("giant-and-99").build(0).demands
    found = sent_by("giant-and-99")
    assert [ask.due_s for ask in found] == [demand.at for demand in demands]
    assert [ask.prompt_tokens for ask in found] == [demand.prompt_tokens for demand in demands]
    assert [ask.max_tokens for ask in found] == [demand.output_tokens for demand in demands]
    assert all(len(words(ask)) == ask.prompt_tokens for ask in found)


def test_a_burst_keeps_its_window_and_what_is_good() -> None:
    plan = scenario_plan("campaign", replace(OPTIONS, time_scale=0.5, scale=0.1))
    scenario = find_scenario("campaign").build(0)
    assert plan.phases[0].kind is Kind.BURST
    assert scenario.burst is not None
    assert plan.phases[0].spike == (scenario.burst.start_s / 2, scenario.burst.end_s / 2)
    assert plan.objective.ttft_s == scenario.slo.ttft_s


def test_a_closed_loops_demands_go_round_for_its_users() -> None:
    plan = scenario_plan("jitter", replace(OPTIONS, scale=0.1))
    phase = plan.phases[0]
    assert (phase.users, phase.rate_per_s) == (10, None)
    count = len(sent_rows(plan.phases[0].source))
    again = [*islice(phase.source.asks(0), count + 2)]
    assert again[count].max_tokens == again[0].max_tokens
    assert again[count].body != again[0].body


def sent_rows(source: Any) -> tuple[TrafficRow, ...]:
    rows: tuple[TrafficRow, ...] = source.rows
    return rows


def test_prompts_that_share_blocks_begin_with_the_same_words() -> None:
    plan = scenario_plan("sessions", replace(OPTIONS, time_scale=0.1))
    source: Any = plan.phases[0].source
    by_first: dict[int, list[Ask]] = {}
    for row, ask in zip(source.rows, source.asks(0), strict=True):
        if len(row.blocks) >= 2 and row.prompt_tokens >= 1200:
            by_first.setdefault(row.blocks[1], []).append(ask)
    shared = [asks for asks in by_first.values() if len(asks) > 1]
    assert shared
    for asks in shared:
        assert len({tuple(words(ask)[:1000]) for ask in asks}) == 1
        assert len({tuple(words(ask)[-NONCE_WORDS:]) for ask in asks}) == len(asks)


def test_a_chains_calls_come_one_after_the_other_and_say_their_deadline() -> None:
    plan = scenario_plan("agent-chain", replace(OPTIONS, time_scale=0.2))
    found = [*plan.phases[0].source.asks(0)]
    assert {ask.label for ask in found} == {"retrieve", "plan", "tool", "answer"}
    assert all(dict(ask.headers)["x-tidegate-deadline-ms"] == "6000" for ask in found)
    assert all(ask.patience_s == 6.0 for ask in found)
    assert "even distances" in plan.notes["chains"]


def test_classes_and_tenants_are_told() -> None:
    found = sent_by("mixed-2x", replace(OPTIONS, time_scale=0.1))
    assert {dict(ask.headers)["x-tidegate-class"] for ask in found} == {"interactive", "relaxed"}
    frames = sent_by("video-12@2", replace(OPTIONS, time_scale=0.1, tenant_keys={"stream-1": "sk-1"}))
    assert {ask.tenant for ask in frames} == {"stream-0", "stream-1"}
    assert all((("authorization", "Bearer sk-1") in ask.headers) is (ask.tenant == "stream-1") for ask in frames)


def test_a_faster_run_keeps_the_rate_and_the_shape_by_leaving_rows_out() -> None:
    rows = [TrafficRow(at_s=at / 10, prompt_tokens=1, output_tokens=1, label="x") for at in range(4000)]
    half = stretched(rows, 1.0, 0.5, 0)
    assert len(half) == pytest.approx(2000, rel=0.07)
    assert half[-1].at_s == pytest.approx(200.0, rel=0.02)
    more = stretched(rows, 2.5, 1.0, 0)
    assert len(more) == pytest.approx(10_000, rel=0.02)
    assert stretched(rows, 2.5, 1.0, 0) == more
    assert stretched(rows[:1], 1e-9, 1.0, 0) == (rows[0],)
    assert stretched(rows, 1.0, 1.0, 0) == tuple(rows)


def test_a_replay_has_a_files_times_and_lengths_and_none_of_its_names() -> None:
    plan = replay_plan(str(EXAMPLE), OPTIONS)
    found = [*plan.phases[0].source.asks(0)]
    assert [ask.due_s for ask in found] == [0.0, 0.4, 1.9, 2.0, 3.1]
    assert [ask.prompt_tokens for ask in found] == [210, 95, 240, 1800, 1]
    assert found[3].tenant == "gold"
    assert found[1].session == found[2].session
    assert "a" not in (found[1].session, *dict(found[1].headers).values())
    earlier, later = words(found[1]), words(found[2])
    assert later[: len(earlier) - NONCE_WORDS] == earlier[:-NONCE_WORDS]
    assert found[4].refusal is not None
    assert found[4].refusal.codes == {"empty_input"}


def test_a_replay_has_its_tenants_keys_and_the_wanted_nonce() -> None:
    plan = replay_plan(str(EXAMPLE), replace(OPTIONS, tenant_keys={"gold": "sk"}, nonce=Nonce.NONE))
    found = [*plan.phases[0].source.asks(0)]
    assert [ask.tenant for ask in found if ("authorization", "Bearer sk") in ask.headers] == ["gold"]
    salted = [*plan.phases[0].source.salted("z").asks(0)]
    assert [ask.body for ask in salted if not ask.session] == [ask.body for ask in found if not ask.session]


def test_records_of_a_load_run_are_replayed(tmp_path: Path) -> None:
    def sample(index: int, **fields: Any) -> Sample:
        return Sample(
            **{
                "phase": "p", "target": "t", "index": index, "label": "chat", "due_at": 100.0 + index, "sent_at": 0.0,
                "ended_at": 0.0, "outcome": ClientOutcome.OK, **fields,
            }
        )  # fmt: skip

    samples = [
        sample(0, prompt_tokens=50, output_tokens=20),
        sample(1, meant_tokens=9000, max_tokens=30, code="context_length_exceeded", outcome=ClientOutcome.EXPECTED),
        sample(2, meant_tokens=70, code="queue_full", outcome=ClientOutcome.SHED),
    ]
    path = tmp_path / "records.jsonl.gz"
    fields = Sample.__struct_fields__
    with gzip.open(path, "wb") as file:
        for each in samples:
            file.write(msgspec.json.encode({name: getattr(each, name) for name in fields}) + b"\n")
    found = [*replay_plan(str(path), replace(OPTIONS, context_tokens=4096)).phases[0].source.asks(0)]
    assert [ask.due_s for ask in found] == [0.0, 1.0, 2.0]
    assert [ask.prompt_tokens for ask in found] == [50, 9000, 70]
    assert [ask.max_tokens for ask in found] == [20, 30, 64]
    assert [ask.refusal for ask in found] == [None, REFUSAL, None]


def test_a_log_of_the_gateway_is_replayed(tmp_path: Path) -> None:
    path = tmp_path / "gate.log"
    path.write_text(
        "2026-11-30T10:00:00.000+00:00 started\n"
        "2026-11-30T10:00:01.000+00:00 request id=a class=interactive tenant=gold prompt_tokens=40 output_tokens=9\n"
        "[INFO] 2026-11-30T10:00:00.100+00:00 request id=c route=/metrics status=404 prompt_tokens=0\n"
        "[INFO] 2026-11-30T10:00:00.500+00:00 request id=b route=/v1/chat/completions class=batch reason=empty_input "
        "prompt_tokens=0 output_tokens=0\n"
    )
    first, second = read_rows(path)
    assert (first.at_s, first.label, first.code, first.prompt_tokens) == (0.0, "batch", "empty_input", 1)
    assert (second.at_s, second.label, second.tenant, second.output_tokens) == (0.5, "interactive", "gold", 9)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no request in it"),
        ("nothing of ours\n", "no request in it"),
        ('{"at": 1}\n', ":1: no request: prompt_tokens is missing"),
        ('\n{"at": -1, "prompt_tokens": 1, "output_tokens": 1}\n', ":2: no request: at must be a number from 0 on"),
        ('{"at": true, "prompt_tokens": 1, "output_tokens": 1}\n', "got True"),
        ('{"at": 0, "prompt_tokens": 1, "output_tokens": 1}\n[1]\n', ":2: no request: each line is an object"),
        ("2026-11-30T10:00:01 request id=a prompt_tokens=many\n", ":1: no request"),
    ],
)
def test_a_file_of_something_else_is_told_by_its_lines(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(text)
    with pytest.raises(ConfigError) as error:
        read_rows(path)
    assert said in str(error.value)
    assert str(path) in str(error.value)


def test_a_file_that_is_no_text_is_told(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError):
        read_rows(path)
